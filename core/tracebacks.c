/* How compiled functions stand in tracebacks: takes the place of what mypyc's exc_ops.c does.

   mypyc knows a file only by its path inside of the sources, which is found nowhere once the package
   is installed: Python then shows lines of any file of that name. Here a frame names the file beside
   the library. Of frames of the package that follow each other, the outermost is kept, which is the
   one that somebody called; PLUGRAD_FULL_TRACEBACK=1 keeps them all. */

#include <Python.h>
#include <frameobject.h>
#include <stdlib.h>
#include <string.h>
#include "CPy.h"

#define PACKAGE "plugrad"

static char folder[4096]; /* what the package is in, with the separator; empty until it is known */

static int is_separator(char c) {
    return c == '/' || c == '\\';
}

/* Looks at sys.modules once the package is there. Leaves no error behind. */
static void find_folder(void) {
    PyObject *name = PyUnicode_FromString(PACKAGE);
    PyObject *package = name ? PyImport_GetModule(name) : NULL;
    PyObject *file = package ? PyObject_GetAttrString(package, "__file__") : NULL;
    const char *path = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL;
    if (path != NULL && strlen(path) < sizeof folder) {
        size_t end = strlen(path);
        int components = 0; /* of .../plugrad/__init__.py, two go */
        while (end > 0 && components < 2) {
            components += is_separator(path[--end]);
        }
        if (components == 2) {
            memcpy(folder, path, end + 1);
            folder[end + 1] = '\0';
        }
    }
    PyErr_Clear();
    Py_XDECREF(file);
    Py_XDECREF(package);
    Py_XDECREF(name);
}

static int starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether a step of a traceback is in a file of the package. */
static int is_inside(PyTracebackObject *step) {
    PyCodeObject *code = PyFrame_GetCode(step->tb_frame);
    const char *path = PyUnicode_AsUTF8(code->co_filename);
    int inside = 0;
    if (path == NULL) {
        PyErr_Clear();
    } else {
        if (folder[0] && starts_with(path, folder)) {
            path += strlen(folder);
        }
        inside = starts_with(path, PACKAGE) && is_separator(path[strlen(PACKAGE)]);
    }
    Py_DECREF(code);
    return inside;
}

static int shows_all(void) {
    const char *wanted = getenv("PLUGRAD_FULL_TRACEBACK");
    return wanted != NULL && wanted[0] != '\0' && strcmp(wanted, "0") != 0;
}

/* Takes a reference to a traceback; gives one to what of it follows the package's own frames. */
static PyObject *without_inner_frames(PyObject *traceback) {
    while (traceback != NULL && PyTraceBack_Check(traceback)
           && is_inside((PyTracebackObject *)traceback)) {
        PyObject *next = (PyObject *)((PyTracebackObject *)traceback)->tb_next;
        Py_XINCREF(next);
        Py_DECREF(traceback);
        traceback = next;
    }
    return traceback;
}

void CPy_AddTraceback(const char *filename, const char *funcname, int line, PyObject *globals) {
    PyObject *type, *value, *traceback;
    char path[sizeof folder + 512];
    PyErr_Fetch(&type, &value, &traceback);
    if (!folder[0]) {
        find_folder();
    }
    if (!shows_all()) {
        traceback = without_inner_frames(traceback);
    }
    PyOS_snprintf(path, sizeof path, "%s%s", folder, filename);
    PyCodeObject *code = PyCode_NewEmpty(path, funcname, line);
    PyFrameObject *frame = code ? PyFrame_New(PyThreadState_Get(), code, globals, NULL) : NULL;
    /* An error on the way here gives way to the one that is being told. */
    PyErr_Restore(type, value, traceback);
    if (frame != NULL) {
        PyTraceBack_Here(frame);
    }
    Py_XDECREF(frame);
    Py_XDECREF(code);
}

void CPy_TypeErrorTraceback(const char *filename, const char *funcname, int line,
                            PyObject *globals, const char *expected, PyObject *value) {
    CPy_TypeError(expected, value);
    CPy_AddTraceback(filename, funcname, line, globals);
}

void CPy_AttributeError(const char *filename, const char *funcname, const char *classname,
                        const char *attrname, int line, PyObject *globals) {
    PyErr_Format(PyExc_AttributeError, "attribute '%.200s' of '%.200s' undefined", attrname,
                 classname);
    CPy_AddTraceback(filename, funcname, line, globals);
}
