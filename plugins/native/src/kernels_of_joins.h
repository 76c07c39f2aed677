/* Arrays of any dtype that are joined. */

#ifndef PLUGRAD_KERNELS_OF_JOINS_H
#define PLUGRAD_KERNELS_OF_JOINS_H

#include "arrays.h"

/* Arrays of any one dtype joined along a dimension, one that is new for `stack`: arrays, dim. */
static PyObject *join(PyObject *const *args, Py_ssize_t given, int is_new)
{
    if (given != 2 || !PyList_Check(args[0])) {
        return declined();
    }
    Py_ssize_t count = PyList_GET_SIZE(args[0]);
    PyArrayObject *first = count ? (PyArrayObject *)PyList_GET_ITEM(args[0], 0) : NULL;
    if (first == NULL || !PyArray_CheckExact(first)) {
        return declined();
    }
    PyArray_Descr *dtype = PyArray_DESCR(first);
    int ndim = PyArray_NDIM(first) + is_new;
    int dim = dimension_of(args[1], ndim);
    if (dim < 0 || ndim > NPY_MAXDIMS || PyDataType_REFCHK(dtype)) {
        return declined();
    }
    npy_intp shape[NPY_MAXDIMS], total = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyArrayObject *one = (PyArrayObject *)PyList_GET_ITEM(args[0], i);
        if (!PyArray_CheckExact(one) || PyArray_DESCR(one) != dtype ||
            PyArray_NDIM(one) != PyArray_NDIM(first) || !PyArray_IS_C_CONTIGUOUS(one)) {
            return declined();
        }
        for (int d = 0; d < PyArray_NDIM(one); d++) {
            if ((is_new || d != dim) && PyArray_DIM(one, d) != PyArray_DIM(first, d)) {
                return declined();
            }
        }
        total += is_new ? 1 : PyArray_DIM(one, dim);
    }
    for (int d = 0, source = 0; d < ndim; d++) {
        shape[d] = is_new && d == dim ? 0 : PyArray_DIM(first, source++);
    }
    shape[dim] = total;
    PyArrayObject *out = new_of(first, ndim, shape);
    npy_intp size = out == NULL ? 0 : PyArray_SIZE(out);
    if (size == 0) {
        return (PyObject *)out;
    }
    npy_intp outer = product(out, 0, dim);
    char *target = DATA(out);
    for (npy_intp o = 0; o < outer; o++) {
        for (Py_ssize_t i = 0; i < count; i++) {
            PyArrayObject *one = (PyArrayObject *)PyList_GET_ITEM(args[0], i);
            npy_intp bytes = PyArray_NBYTES(one) / outer;
            memcpy(target, (char *)DATA(one) + o * bytes, (size_t)bytes);
            target += bytes;
        }
    }
    return (PyObject *)out;
}

static PyObject *cat(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return join(args, count, 0);
}

static PyObject *stack(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return join(args, count, 1);
}

#endif
