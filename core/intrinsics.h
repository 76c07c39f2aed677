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

/* Most fields of most nodes are None. The collector, which visits each node of a graph several times
   while the graph is built, need not be called for that. */
#undef Py_VISIT
#define Py_VISIT(field)                                                                            \
    do {                                                                                           \
        if ((field) && (PyObject *)(field) != Py_None) {                                           \
            int visited = visit((PyObject *)(field), arg);                                         \
            if (visited) {                                                                         \
                return visited;                                                                    \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#endif
