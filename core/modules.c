/* How Python comes to the modules in the library, which have no files of their own: mypyc would write,
   for each, a C file and link a second library that finds the module in the first.

   The library has a function `create`, which makes and runs a module: plugrad/_library.py calls it.
   And it asks there what a module says of itself, `__file__` and such, where mypyc would name the
   files that are not there.

   A module that is there already is imported without Python's machinery: `import plugrad` does it
   a thousand times. */

#include <Python.h>
#include "CPy.h"

#define LIBRARY "plugrad__mypyc"
#define FINDER "plugrad._library"

PyObject *mypyc_CPyImport_ImportFromMany(PyObject *module_name, PyObject *names,
                                         PyObject *as_names, PyObject *globals);

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
    static PyObject *describe = NULL;
    if (describe == NULL) {
        PyObject *finder = PyImport_ImportModule(FINDER);
        describe = finder ? PyObject_GetAttrString(finder, "describe") : NULL;
        Py_XDECREF(finder);
    }
    PyObject *done = describe ? PyObject_CallFunctionObjArgs(describe, module, module_name,
                                                             is_package ? Py_True : Py_False, NULL)
                              : NULL;
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Whether this thread holds the lock under which a module is imported. */
static bool holds_lock(PyObject *module_name) {
    static PyObject *locks = NULL;
    if (locks == NULL) {
        PyObject *importlib = PyImport_ImportModule("importlib._bootstrap");
        locks = importlib ? PyObject_GetAttrString(importlib, "_module_locks") : NULL;
        Py_XDECREF(importlib);
    }
    PyObject *reference = locks ? PyObject_GetItem(locks, module_name) : NULL;
    PyObject *lock = reference ? PyObject_CallNoArgs(reference) : NULL;
    PyObject *owner = lock ? PyObject_GetAttrString(lock, "owner") : NULL;
    bool holds = owner != NULL && PyLong_Check(owner) &&
                 PyLong_AsUnsignedLong(owner) == PyThread_get_thread_ident();
    Py_XDECREF(owner);
    Py_XDECREF(lock);
    Py_XDECREF(reference);
    PyErr_Clear();
    return holds;
}

/* A module that an import would only look up: it is whole, or this thread is making it. NULL, without
   an exception, for others. */
static PyObject *imported(PyObject *module_name) {
    PyObject *module;
    if (PyDict_GetItemRef(PyImport_GetModuleDict(), module_name, &module) < 0) {
        PyErr_Clear();
    } else if (module != NULL && CPyImport_IsModuleInitializing(module) &&
               !holds_lock(module_name)) {
        Py_CLEAR(module);
    }
    return module;
}

/* The package of a module that is imported; in place of `PyImport_Import`, which for `a.b` goes
   through Python's machinery to find `a` first: core/setup.py puts it there. */
PyObject *plugrad_import_parent(PyObject *module_name) {
    PyObject *module = imported(module_name);
    return module ? module : PyImport_Import(module_name);
}

/* What `from module import name` gives, of a module that is imported; NULL for a submodule that is
   not. */
static PyObject *imported_name(PyObject *module, PyObject *module_name, PyObject *name) {
    PyObject *value = PyObject_GetAttr(module, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyObject *submodule = PyUnicode_FromFormat("%U.%U", module_name, name);
        value = submodule ? imported(submodule) : NULL;
        Py_XDECREF(submodule);
    }
    return value;
}

/* `from module import names`; in place of mypyc's own function, which asks Python's machinery for
   modules that are there, too: it looks for a `__path__`, and makes an exception of its absence. */
PyObject *CPyImport_ImportFromMany(PyObject *module_name, PyObject *names, PyObject *as_names,
                                   PyObject *globals) {
    PyObject *module = imported(module_name);
    for (Py_ssize_t i = 0; module != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *value = imported_name(module, module_name, PyTuple_GET_ITEM(names, i));
        if (value == NULL ||
            CPyDict_SetItem(globals, PyTuple_GET_ITEM(as_names, i), value) < 0) {
            Py_CLEAR(module);
        }
        Py_XDECREF(value);
    }
    if (module != NULL || PyErr_Occurred()) {
        return module;
    }
    return mypyc_CPyImport_ImportFromMany(module_name, names, as_names, globals);
}
