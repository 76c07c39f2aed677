/* How Python comes to the modules in the library, which have no files of their own: mypyc would write,
   for each, a C file and link a second library that finds the module in the first.

   The library has a function `create`, which makes and runs a module: plugrad/_library.py calls it.
   And it asks there what a module says of itself, `__file__` and such, where mypyc would name the
   files that are not there. */

#include <Python.h>
#include "CPy.h"

#define LIBRARY "plugrad__mypyc"
#define FINDER "plugrad._library"

/* The name of the capsule with a module's function: init_plugrad___dispatch___keys. */
static PyObject *capsule_name(PyObject *module_name) {
    PyObject *dot = PyUnicode_FromString("."), *bar = PyUnicode_FromString("___");
    PyObject *joined = dot && bar ? PyUnicode_Replace(module_name, dot, bar, -1) : NULL;
    PyObject *name = joined ? PyUnicode_FromFormat("init_%U", joined) : NULL;
    Py_XDECREF(joined);
    Py_XDECREF(dot);
    Py_XDECREF(bar);
    return name;
}

/* create(spec): the module of that specification, which has run. */
static PyObject *create(PyObject *library, PyObject *spec) {
    typedef PyObject *(*Function)(void);
    Function function = NULL;
    PyObject *module_name = PyObject_GetAttrString(spec, "name");
    PyObject *name = module_name ? capsule_name(module_name) : NULL;
    PyObject *capsule = name ? PyObject_GetAttr(library, name) : NULL;
    PyObject *full = capsule ? PyUnicode_FromFormat(LIBRARY ".%U", name) : NULL;
    const char *text = full ? PyUnicode_AsUTF8(full) : NULL;
    if (text != NULL) {
        function = (Function)PyCapsule_GetPointer(capsule, text);
    }
    PyObject *module = function ? function() : NULL;
    Py_XINCREF(module); /* mypyc's static pointers borrow it for ever */
    Py_XDECREF(full);
    Py_XDECREF(capsule);
    Py_XDECREF(name);
    Py_XDECREF(module_name);
    return module;
}

static PyMethodDef functions[] = {
    {"create", create, METH_O, "Make and run the module of a specification."},
    {NULL, NULL, 0, NULL},
};

/* Called where the library is made: core/setup.py puts the call there. */
int plugrad_add_functions(PyObject *library) {
    return PyModule_AddFunctions(library, functions);
}

/* Tells a new module its file, package and specification; in place of mypyc's own function. */
int CPyImport_SetDunderAttrs(PyObject *module, PyObject *module_name, PyObject *library_file,
                             PyObject *suffix, Py_ssize_t is_package) {
    (void)library_file;
    (void)suffix;
    PyObject *finder = PyImport_ImportModule(FINDER);
    PyObject *done = finder ? PyObject_CallMethod(finder, "describe", "OOO", module, module_name,
                                                  is_package ? Py_True : Py_False)
                            : NULL;
    Py_XDECREF(finder);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
