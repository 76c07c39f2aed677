/* Kernels that copy what indices name, from arrays of any dtype. Indices out of range are left to
   plugrad-cpu, which says which they are. */

#ifndef PLUGRAD_KERNELS_OF_INDICES_H
#define PLUGRAD_KERNELS_OF_INDICES_H

#include "arrays.h"

/* A contiguous array without references to objects, or NULL. */
static PyArrayObject *movable(PyObject *given)
{
    if (!PyArray_CheckExact(given)) {
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)given;
    return is_plain(a) && !PyDataType_REFCHK(PyArray_DESCR(a)) ? a : NULL;
}

/* The same of int64 below `limit`, none of them negative. */
static PyArrayObject *indices_below(PyObject *given, npy_intp limit)
{
    PyArrayObject *a = movable(given);
    if (a == NULL || PyArray_TYPE(a) != NPY_INT64) {
        return NULL;
    }
    const npy_int64 *index = DATA(a);
    npy_intp n = PyArray_SIZE(a);
    int inside = 1;
    for (npy_intp i = 0; i < n; i++) {
        inside &= (npy_uint64)index[i] < (npy_uint64)limit;
    }
    return inside ? a : NULL;
}

#define COPY_ELEMENTS(type)                                                                        \
    {                                                                                              \
        const type *source = from;                                                                 \
        type *target = to;                                                                         \
        for (npy_intp o = 0; o < outer; o++, source += rows) {                                     \
            for (npy_intp i = 0; i < count; i++) {                                                 \
                *target++ = source[index[i]];                                                      \
            }                                                                                      \
        }                                                                                          \
    }

/* Of `outer` tables of `rows` rows each, those that the indices name. */
static void copy_rows(const void *from, void *to, const npy_int64 *index, npy_intp count,
                      npy_intp outer, npy_intp rows, npy_intp bytes)
{
    if (bytes == 4) {
        COPY_ELEMENTS(npy_uint32)
    } else if (bytes == 8) {
        COPY_ELEMENTS(npy_uint64)
    } else {
        const char *source = from;
        char *target = to;
        for (npy_intp o = 0; o < outer; o++, source += rows * bytes) {
            for (npy_intp i = 0; i < count; i++, target += bytes) {
                memcpy(target, source + index[i] * bytes, (size_t)bytes);
            }
        }
    }
}

/* `shape` is that of the result; `a` has its table in the dimension `dim`. */
static PyObject *rows_of(PyArrayObject *a, int dim, PyArrayObject *index, int ndim,
                         npy_intp *shape)
{
    PyArrayObject *out = new_of(a, ndim, shape);
    if (out != NULL && PyArray_SIZE(out) > 0) {
        npy_intp bytes = product(a, dim + 1, PyArray_NDIM(a)) * PyArray_ITEMSIZE(a);
        RELEASING_LOCK(PyArray_SIZE(out),
                       copy_rows(DATA(a), DATA(out), DATA(index), PyArray_SIZE(index),
                                 product(a, 0, dim), PyArray_DIM(a, dim), bytes));
    }
    return (PyObject *)out;
}

/* array, dim, index */
static PyObject *index_select(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 3 ? movable(args[0]) : NULL;
    int ndim = a == NULL ? 0 : PyArray_NDIM(a);
    int dim = ndim == 0 ? -1 : dimension_of(args[1], ndim);
    if (dim < 0) {
        return declined();
    }
    PyArrayObject *index = indices_below(args[2], PyArray_DIM(a, dim));
    if (index == NULL) {
        return declined();
    }
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++) {
        shape[d] = d == dim ? PyArray_SIZE(index) : PyArray_DIM(a, d);
    }
    return rows_of(a, dim, index, ndim, shape);
}

/* weight, indices */
static PyObject *embedding(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *weight = count == 2 ? movable(args[0]) : NULL;
    if (weight == NULL || PyArray_NDIM(weight) != 2) {
        return declined();
    }
    PyArrayObject *index = indices_below(args[1], PyArray_DIM(weight, 0));
    int ndim = index == NULL ? NPY_MAXDIMS : PyArray_NDIM(index);
    if (ndim == NPY_MAXDIMS) {
        return declined();
    }
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++) {
        shape[d] = PyArray_DIM(index, d);
    }
    shape[ndim] = PyArray_DIM(weight, 1);
    return rows_of(weight, 0, index, ndim + 1, shape);
}

#undef COPY_ELEMENTS

#endif
