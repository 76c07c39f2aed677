/* What mypyc's C uses of intrinsics.c beside the functions: core/setup.py puts it there. */

#ifndef PLUGRAD_INTRINSICS_H
#define PLUGRAD_INTRINSICS_H

#include <Python.h>

/* `plugrad.Tensor`, once it is there: nearly every tensor is of that class itself, which one
   comparison tells. */
extern PyTypeObject *plugrad_tensor_class;

int plugrad_is_subclass_of_tensor(PyTypeObject *type);

#define PLUGRAD_IS_TENSOR(value) \
    (Py_TYPE(value) == plugrad_tensor_class || plugrad_is_subclass_of_tensor(Py_TYPE(value)))

#endif
