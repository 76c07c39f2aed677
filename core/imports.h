/* What a compiled module says of itself, and how modules are made and imported: imports.c. */

#ifndef PLUGRAD_IMPORTS_H
#define PLUGRAD_IMPORTS_H

#include <Python.h>
#include "CPy.h"

/* A module of the library, as the functions that mypyc has for modules take it. */
typedef struct {
    PyObject *(*create)(void); /* the module, which has not run; the same again if it is there */
    int (*run)(PyObject *module);
    CPyModule **module;
    CPyModuleCache *cache;
    CPyImportState *state;
    CPyModuleLockAPI **locks;
    const char *name;
    int is_package;
} plugrad_module;

/* One of the imports that a module begins with: from the library, or else from elsewhere. */
typedef struct {
    int line;
    const plugrad_module *which;
    CPyModuleCache *cache;
    PyObject **name;
    PyObject **names; /* NULL: `import name`, or with `as_names`, `import name as as_name` */
    PyObject **as_names;
} plugrad_step;

PyObject *plugrad_make(const plugrad_module *which);
PyObject *plugrad_import(const plugrad_module *which, PyObject *name);
bool plugrad_import_names(const plugrad_module *which, PyObject *name, PyObject *names,
                          PyObject *as_names, PyObject *globals);
bool plugrad_import_as(const plugrad_module *which, PyObject *name, PyObject *as_name,
                       PyObject *globals);
bool plugrad_import_other(CPyModuleCache *cache, PyObject *name);
bool plugrad_import_other_names(CPyModuleCache *cache, PyObject *name, PyObject *names,
                                PyObject *as_names, PyObject *globals);
int plugrad_import_all(const plugrad_step *steps, size_t count, PyObject *globals);
bool plugrad_set_final(PyObject **place, PyObject *value, PyObject *name, PyObject *globals);
void plugrad_clear(PyObject **const *statics, size_t count);

#endif
