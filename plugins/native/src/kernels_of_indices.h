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

/* What gather and scatter share: an array of `size` elements along a dimension, an index of `count`
   along it, and `outer` times `inner` lines of both. */
typedef struct {
    npy_intp outer, size, count, inner;
    const npy_int64 *index;
} Lines;

/* The index array, third of the arguments; NULL if it is not served. */
static PyArrayObject *lines_from(PyObject *const *args, PyArrayObject *a, Lines *lines)
{
    int ndim = a == NULL ? 0 : PyArray_NDIM(a);
    int dim = ndim == 0 ? -1 : dimension_of(args[1], ndim);
    PyArrayObject *index = dim < 0 ? NULL : indices_below(args[2], PyArray_DIM(a, dim));
    if (index == NULL || PyArray_NDIM(index) != ndim) {
        return NULL;
    }
    for (int d = 0; d < ndim; d++) {
        if (d != dim && PyArray_DIM(index, d) != PyArray_DIM(a, d)) {
            return NULL;
        }
    }
    *lines = (Lines){product(a, 0, dim), PyArray_DIM(a, dim), PyArray_DIM(index, dim),
                     product(a, dim + 1, ndim), DATA(index)};
    return index;
}

/* Calls `MOVE` with the place of an element of the index, and that of the element it names. */
#define EACH_LINE(lines, MOVE)                                                                     \
    {                                                                                              \
        npy_intp place = 0;                                                                        \
        for (npy_intp o = 0; o < lines->outer; o++) {                                              \
            for (npy_intp k = 0; k < lines->count; k++) {                                          \
                for (npy_intp i = 0; i < lines->inner; i++, place++) {                             \
                    npy_intp named = (o * lines->size + lines->index[place]) * lines->inner + i;   \
                    MOVE;                                                                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define MOVE_ALL(lines, from, to, source, target, bytes)                                           \
    if (bytes == 4) {                                                                              \
        EACH_LINE(lines, ((npy_uint32 *)to)[target] = ((const npy_uint32 *)from)[source])          \
    } else if (bytes == 8) {                                                                       \
        EACH_LINE(lines, ((npy_uint64 *)to)[target] = ((const npy_uint64 *)from)[source])          \
    } else {                                                                                       \
        EACH_LINE(lines, memcpy((char *)to + target * bytes, (const char *)from + source * bytes,  \
                                (size_t)bytes))                                                    \
    }

static void gather_lines(const Lines *lines, const void *from, void *to, npy_intp bytes)
{
    MOVE_ALL(lines, from, to, named, place, bytes)
}

static void scatter_lines(const Lines *lines, const void *from, void *to, npy_intp bytes)
{
    MOVE_ALL(lines, from, to, place, named, bytes)
}

#undef MOVE_ALL
#undef EACH_LINE

/* a, dim, index */
static PyObject *gather(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 3 ? movable(args[0]) : NULL;
    Lines lines;
    PyArrayObject *index = lines_from(args, a, &lines);
    if (index == NULL) {
        return declined();
    }
    PyArrayObject *out = new_of(a, PyArray_NDIM(index), PyArray_DIMS(index));
    if (out != NULL) {
        RELEASING_LOCK(PyArray_SIZE(index),
                       gather_lines(&lines, DATA(a), DATA(out), PyArray_ITEMSIZE(a)));
    }
    return (PyObject *)out;
}

/* a, dim, index, source, which may have any layout */
static PyObject *scatter(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 4 ? movable(args[0]) : NULL;
    Lines lines;
    PyArrayObject *index = a == NULL ? NULL : lines_from(args, a, &lines);
    PyArrayObject *given = index == NULL ? NULL : (PyArrayObject *)args[3];
    if (given == NULL || !PyArray_CheckExact(given) || !PyArray_SAMESHAPE(index, given) ||
        !PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(given))) {
        return declined();
    }
    PyArrayObject *source = PyArray_GETCONTIGUOUS(given);
    if (source == NULL) {
        return NULL;
    }
    PyArrayObject *out = new_of(a, PyArray_NDIM(a), PyArray_DIMS(a));
    if (out != NULL) {
        memcpy(DATA(out), DATA(a), (size_t)PyArray_NBYTES(a));
        RELEASING_LOCK(PyArray_SIZE(index),
                       scatter_lines(&lines, DATA(source), DATA(out), PyArray_ITEMSIZE(a)));
    }
    Py_DECREF(source);
    return (PyObject *)out;
}

#endif
