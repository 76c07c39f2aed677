/* Which arrays the kernels serve, and how results are made. */

#ifndef PLUGRAD_ARRAYS_H
#define PLUGRAD_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include "memory.h"
#include "threads.h"

/* From so many elements on other threads may run meanwhile. */
#define LARGE (1 << 15)
#define RELEASING_LOCK(size, work)                                                                 \
    if ((size) >= LARGE) {                                                                         \
        Py_BEGIN_ALLOW_THREADS;                                                                    \
        work;                                                                                      \
        Py_END_ALLOW_THREADS;                                                                      \
    } else {                                                                                       \
        work;                                                                                      \
    }

/* The same for work that threads share from `least` elements on, `count` of something of which
   `step` make a part. */
#define SHARING(size, least, part, work, count, step)                                              \
    {                                                                                              \
        int threads = is_worth_sharing(size, least) ? threads_for(size, 0) : 1;                    \
        RELEASING_LOCK(size, share(part, work, count, step, threads));                             \
    }

/* The function for the dtype of an array, of the two that kinds.h makes. */
#define OF_TYPE(array, name) (PyArray_TYPE(array) == NPY_FLOAT ? name##_float : name##_double)
#define DATA(array) PyArray_DATA(array)

/* The call is left to the next kernel. */
static PyObject *declined(void)
{
    return Py_NewRef(Py_NotImplemented);
}

/* NULL if an error is set, else `declined`. */
static PyObject *failed(void)
{
    return PyErr_Occurred() ? NULL : declined();
}

static int is_plain(PyArrayObject *a)
{
    return PyArray_IS_C_CONTIGUOUS(a) && PyArray_ISALIGNED(a) && PyArray_ISNOTSWAPPED(a);
}

static int is_real(PyArrayObject *a)
{
    return PyArray_TYPE(a) == NPY_FLOAT || PyArray_TYPE(a) == NPY_DOUBLE;
}

/* A contiguous array of float32 or float64, or NULL without an error. */
static PyArrayObject *served(PyObject *given)
{
    if (!PyArray_CheckExact(given)) {
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)given;
    return is_real(a) && is_plain(a) ? a : NULL;
}

/* The same of the dtype of another one that is served. */
static PyArrayObject *served_like(PyObject *given, PyArrayObject *other)
{
    PyArrayObject *a = (PyArrayObject *)given;
    return PyArray_CheckExact(given) && PyArray_TYPE(a) == PyArray_TYPE(other) && is_plain(a)
               ? a
               : NULL;
}

/* An array with one element for each of `count`, in `*found`, or NULL there for None; whether it is
   one of these. */
static int optional_flat(PyObject *given, PyArrayObject *other, npy_intp count,
                         PyArrayObject **found)
{
    *found = NULL;
    if (given == Py_None) {
        return 1;
    }
    *found = served_like(given, other);
    return *found != NULL && PyArray_SIZE(*found) == count;
}

/* The array of an incoming gradient, of the shape and dtype of `other`. Gradients of sums are
   single numbers that are repeated: those are written out. A new reference; NULL with an error, or
   without one if the array is not served. */
static PyArrayObject *gradient_like(PyObject *given, PyArrayObject *other)
{
    if (!PyArray_CheckExact(given)) {
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)given;
    if (PyArray_TYPE(a) != PyArray_TYPE(other) || !PyArray_SAMESHAPE(a, other) ||
        !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) {
        return NULL;
    }
    if (PyArray_IS_C_CONTIGUOUS(a)) {
        return (PyArrayObject *)Py_NewRef(a);
    }
    npy_intp last = NPY_MAX_INTP;
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp stride = PyArray_STRIDE(a, d);
        if (stride < 0 || stride > last) {
            return NULL; /* the result would lie in another order */
        }
        last = stride > 0 ? stride : last;
    }
    return (PyArrayObject *)PyArray_NewCopy(a, NPY_CORDER);
}

/* Bytes of an array of a shape; 0 if there are too many to count. */
static size_t bytes_of(int ndim, const npy_intp *shape, size_t itemsize)
{
    npy_intp count = PyArray_OverflowMultiplyList(shape, ndim);
    return count < 0 || (size_t)count > SIZE_MAX / itemsize ? 0 : (size_t)count * itemsize;
}

/* Contiguous. */
static PyArrayObject *new_array(int ndim, const npy_intp *shape, int type)
{
    PyObject *made;
    WITH_MEMORY(bytes_of(ndim, shape, type == NPY_FLOAT ? 4 : 8), made,
                PyArray_SimpleNew(ndim, (npy_intp *)shape, type));
    return (PyArrayObject *)made;
}

static PyArrayObject *new_zeros(int ndim, const npy_intp *shape, int type)
{
    PyObject *made;
    WITH_MEMORY(bytes_of(ndim, shape, type == NPY_FLOAT ? 4 : 8), made,
                PyArray_ZEROS(ndim, (npy_intp *)shape, type, 0));
    return (PyArrayObject *)made;
}

/* Of the dtype of an array. */
static PyArrayObject *new_of(PyArrayObject *like, int ndim, const npy_intp *shape)
{
    PyObject *made;
    PyArray_Descr *dtype = PyArray_DESCR(like);
    Py_INCREF(dtype);
    WITH_MEMORY(bytes_of(ndim, shape, (size_t)PyArray_ITEMSIZE(like)), made,
                PyArray_Empty(ndim, (npy_intp *)shape, dtype, 0));
    return (PyArrayObject *)made;
}

/* Of the memory layout of an array. */
static PyArrayObject *new_in_order_of(PyArrayObject *like)
{
    PyObject *made;
    WITH_MEMORY((size_t)PyArray_NBYTES(like), made,
                PyArray_NewLikeArray(like, NPY_KEEPORDER, NULL, 0));
    return (PyArrayObject *)made;
}

static PyArrayObject *new_like(PyArrayObject *a)
{
    return new_array(PyArray_NDIM(a), PyArray_DIMS(a), PyArray_TYPE(a));
}

/* An array without dimensions. */
static PyArrayObject *new_number(double value, int type)
{
    PyArrayObject *made = new_array(0, NULL, type);
    if (made != NULL && type == NPY_FLOAT) {
        *(float *)DATA(made) = (float)value;
    } else if (made != NULL) {
        *(double *)DATA(made) = value;
    }
    return made;
}

/* The only element of an array of one. */
static double number_of(PyArrayObject *a)
{
    return PyArray_TYPE(a) == NPY_FLOAT ? *(float *)DATA(a) : *(double *)DATA(a);
}

/* Where an element of an array is, counted from one of the same dtype. */
static inline void *at(const void *data, PyArrayObject *a, npy_intp element)
{
    return (char *)data + element * PyArray_ITEMSIZE(a);
}

/* The product of the sizes from one dimension to another. */
static npy_intp product(PyArrayObject *a, int from, int to)
{
    npy_intp size = 1;
    for (int d = from; d < to; d++) {
        size *= PyArray_DIM(a, d);
    }
    return size;
}

/* The dimension that a Python number names, without sign; -1 if there is none such. */
static int dimension_of(PyObject *given, int ndim)
{
    int overflow = 0;
    long number = PyLong_Check(given) ? PyLong_AsLongAndOverflow(given, &overflow) : ndim;
    number += number < 0 ? ndim : 0;
    return overflow || number < 0 || number >= ndim ? -1 : (int)number;
}

/* Whether a Python number names a dimension, `*dim`, after which all sizes are 1. */
static int is_last(PyObject *given, PyArrayObject *a, int *dim)
{
    *dim = dimension_of(given, PyArray_NDIM(a));
    return *dim >= 0 && product(a, *dim + 1, PyArray_NDIM(a)) == 1;
}

/* Whether it is the dtype of an array, as an argument of kernels. */
static int is_dtype_of(PyObject *given, PyArrayObject *a)
{
    return PyArray_DescrCheck(given) &&
           ((PyArray_Descr *)given)->type_num == PyArray_TYPE(a);
}

static int is_word(PyObject *given, const char *word)
{
    return PyUnicode_Check(given) && PyUnicode_CompareWithASCIIString(given, word) == 0;
}

/* A Python number, or another one for None; whether it is one of these, and not nan. */
static int number_or(PyObject *given, double otherwise, double *found)
{
    if (given == Py_None) {
        *found = otherwise;
        return 1;
    }
    if (!PyFloat_Check(given) && !PyLong_Check(given)) {
        return 0;
    }
    *found = PyFloat_AsDouble(given);
    if (*found == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return !isnan(*found);
}

/* The argument `out`, the only one that is given by name; NULL if it is not or is None. Whether no
   other one is given by name. */
static int named_out(PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **out)
{
    *out = NULL;
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (named == 1 && is_word(PyTuple_GET_ITEM(names, 0), "out")) {
        *out = args[count] == Py_None ? NULL : args[count];
        return 1;
    }
    return named == 0;
}

/* Several results, of which any may have failed; their references are taken over. */
static PyObject *results(int count, PyObject **parts)
{
    PyObject *found = PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        if (found != NULL && parts[i] != NULL) {
            PyTuple_SET_ITEM(found, i, parts[i]);
            continue;
        }
        Py_XDECREF(parts[i]);
        Py_CLEAR(found);
    }
    return found;
}

#endif
