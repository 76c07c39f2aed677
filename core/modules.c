/* The file of every compiled module: takes the place of one C file of mypyc's for each of them.

   The code of all modules is in one library. mypyc writes, for each module, a file of its own whose
   function finds the module's there. Here one binary does so for all; the build compiles it once and
   copies it under each module's name. Python tells by that name what to call, PyInit_keys say, and by
   the module's specification which module is meant: several packages may have a module `keys`. */

#include <Python.h>

#define LIBRARY "plugrad__mypyc"

/* The name of the capsule with a module's function, init_plugrad___dispatch___keys. */
static PyObject *capsule_name(PyObject *module_name) {
    PyObject *dot = PyUnicode_FromString("."), *bar = PyUnicode_FromString("___");
    PyObject *name = NULL;
    PyObject *joined = dot && bar ? PyUnicode_Replace(module_name, dot, bar, -1) : NULL;
    if (joined != NULL) {
        name = PyUnicode_FromFormat("init_%U", joined);
        Py_DECREF(joined);
    }
    Py_XDECREF(dot);
    Py_XDECREF(bar);
    return name;
}

/* The module that mypyc's function makes, and runs. */
static PyObject *create(PyObject *spec, PyModuleDef *definition) {
    (void)definition;
    typedef PyObject *(*Function)(void);
    Function function = NULL;
    PyObject *module_name = PyObject_GetAttrString(spec, "name");
    PyObject *name = module_name ? capsule_name(module_name) : NULL;
    PyObject *library = name ? PyImport_ImportModule(LIBRARY) : NULL;
    PyObject *capsule = library ? PyObject_GetAttr(library, name) : NULL;
    PyObject *full = capsule ? PyUnicode_FromFormat(LIBRARY ".%U", name) : NULL;
    const char *text = full ? PyUnicode_AsUTF8(full) : NULL;
    if (text != NULL) {
        function = (Function)PyCapsule_GetPointer(capsule, text);
    }
    Py_XDECREF(full);
    Py_XDECREF(capsule);
    Py_XDECREF(library);
    Py_XDECREF(name);
    Py_XDECREF(module_name);
    return function ? function() : NULL;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_create, (void *)create},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "plugrad", .m_slots = slots};

#define MODULE(name) \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModuleDef_Init(&definition); }

/* For MSVC's linker, which setuptools may tell so of a package. */
MODULE(__init__)

/* The build adds a line for each name that a module has in its package. */
