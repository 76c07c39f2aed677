/* What mypyc's C uses of intrinsics.c beside the functions: core/setup.py puts it there. */

#ifndef PLUGRAD_INTRINSICS_H
#define PLUGRAD_INTRINSICS_H

#include <Python.h>

/* `plugrad.Tensor`, once it is there: nearly every tensor is of that class itself, which one
   comparison tells. */
extern PyTypeObject *plugrad_tensor_class;

/* Whether an object is of a native class that `plugrad.Tensor` is a subclass of. */
#define PLUGRAD_IS_TENSOR(value, native) \
    (Py_TYPE(value) == plugrad_tensor_class || PyObject_TypeCheck(value, native))

#endif
