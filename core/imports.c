/* What mypyc would write into each module: how it is made, and each step of each import. The calls
   stand there instead: plugrad/codegen/translation/lean_modules.py puts them there. */

#include "imports.h"

/* Takes a module that could not run from where it was noted. Keeps the error. */
static void take_back(const plugrad_module *which, PyObject *name, PyObject *spec) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (name != NULL && PyObject_DelItem(PyImport_GetModuleDict(), name) < 0) {
        PyErr_Clear();
    }
    if (spec != NULL && CPyImport_EndInitializing(spec) < 0) {
        PyErr_Clear();
    }
    Py_CLEAR(*which->module);
    PyErr_Restore(type, value, traceback);
}

/* A module that Python's machinery asks for, which has run. */
PyObject *plugrad_make(const plugrad_module *which) {
    if (*which->module != NULL) {
        return Py_NewRef((PyObject *)*which->module);
    }
    PyObject *spec = NULL;
    PyObject *module = which->create();
    PyObject *name = module ? PyUnicode_FromString(which->name) : NULL;
    if (name == NULL) {
        goto fail;
    }
    /* The library's file and suffix are not asked for: see modules.c. */
    if (CPyImport_SetDunderAttrs(module, name, NULL, NULL, which->is_package) < 0) {
        goto fail;
    }
    spec = CPyImport_BeginInitializing(module);
    if (spec == NULL || PyObject_SetItem(PyImport_GetModuleDict(), name, module) < 0) {
        goto fail;
    }
    if (which->run(module) != 0) {
        goto fail;
    }
    int ended = CPyImport_EndInitializing(spec);
    spec = NULL;
    if (ended < 0) {
        goto fail;
    }
    Py_DECREF(name);
    return module;
fail:
    take_back(which, name, spec);
    Py_XDECREF(name);
    return NULL;
}

/* `import name`, of a module of the library: a new reference to it. */
PyObject *plugrad_import(const plugrad_module *which, PyObject *name) {
    if (CPyImport_IsInitialized(which->state)) {
        return CPyDict_GetItem(PyImport_GetModuleDict(), name);
    }
    return CPyImport_ImportNative(name, which->create, which->run, which->module, which->cache,
                                  which->state, *which->locks, NULL, NULL, which->is_package);
}

/* `from name import names`, of a module of the library. */
bool plugrad_import_names(const plugrad_module *which, PyObject *name, PyObject *names,
                          PyObject *as_names, PyObject *globals) {
    PyObject *module = plugrad_import(which, name);
    PyObject *same = module ? CPyImport_GetNativeAttrs(module, names, as_names, globals) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(same);
    return same != NULL;
}

/* `import name as as_name`, of a module of the library. */
bool plugrad_import_as(const plugrad_module *which, PyObject *name, PyObject *as_name,
                       PyObject *globals) {
    PyObject *module = plugrad_import(which, name);
    bool done = module != NULL && CPyDict_SetItem(globals, as_name, module) >= 0;
    Py_XDECREF(module);
    return done;
}

/* `import name`, of any other module. */
bool plugrad_import_other(CPyModuleCache *cache, PyObject *name) {
    PyObject *found = CPyImport_GetModuleCacheForImport(cache, name);
    if (found != Py_None) {
        return found != NULL;
    }
    PyObject *module = PyImport_Import(name);
    if (module == NULL) {
        return false;
    }
    CPyImport_ReplaceModuleCacheForImport(cache, module);
    Py_DECREF(module);
    return true;
}

/* `from name import names`, of any other module. */
bool plugrad_import_other_names(CPyModuleCache *cache, PyObject *name, PyObject *names,
                                PyObject *as_names, PyObject *globals) {
    PyObject *module = CPyImport_ImportFromMany(name, names, as_names, globals);
    if (module == NULL) {
        return false;
    }
    CPyImport_ReplaceModuleCacheForImport(cache, module);
    Py_DECREF(module);
    return true;
}

/* Imports one after the other. The line of the one that failed, or 0. */
int plugrad_import_all(const plugrad_step *steps, size_t count, PyObject *globals) {
    for (const plugrad_step *step = steps; step < steps + count; step++) {
        bool done;
        if (step->as_names != NULL && step->names == NULL) {
            done = plugrad_import_as(step->which, *step->name, *step->as_names, globals);
        } else if (step->names == NULL) {
            done = plugrad_import_other(step->cache, *step->name);
        } else if (step->which == NULL) {
            done = plugrad_import_other_names(step->cache, *step->name, *step->names,
                                              *step->as_names, globals);
        } else {
            done = plugrad_import_names(step->which, *step->name, *step->names, *step->as_names,
                                        globals);
        }
        if (!done) {
            return step->line;
        }
    }
    return 0;
}

/* `name: Final = value` in a module: it takes the reference to the value, which is NULL, with an
   error, if there is none. */
bool plugrad_set_final(PyObject **place, PyObject *value, PyObject *name, PyObject *globals) {
    *place = value;
    return value != NULL && CPyDict_SetItem(globals, name, value) >= 0;
}

/* Gives back what a module that could not run has made. */
void plugrad_clear(PyObject **const *statics, size_t count) {
    for (size_t i = 0; i < count; i++) {
        Py_CLEAR(*statics[i]);
    }
}
