/* Views of arrays of any dtype; shapes, dimensions and indices were checked by the core. */

#ifndef PLUGRAD_KERNELS_OF_VIEWS_H
#define PLUGRAD_KERNELS_OF_VIEWS_H

#include "arrays.h"

/* Dimensions, and what they were made of. */
typedef struct {
    int ndim;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
} Layout;

static PyArrayObject *viewed(PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted)
{
    return count == wanted && PyArray_CheckExact(args[0]) ? (PyArrayObject *)args[0] : NULL;
}

static Layout layout_of(PyArrayObject *a)
{
    Layout found;
    found.ndim = PyArray_NDIM(a);
    memcpy(found.shape, PyArray_DIMS(a), (size_t)found.ndim * sizeof(npy_intp));
    memcpy(found.strides, PyArray_STRIDES(a), (size_t)found.ndim * sizeof(npy_intp));
    return found;
}

static PyObject *view_of(PyArrayObject *a, const Layout *layout, npy_intp offset)
{
    PyArray_Descr *dtype = PyArray_DESCR(a);
    Py_INCREF(dtype);
    PyObject *found = PyArray_NewFromDescr(
        &PyArray_Type, dtype, layout->ndim, layout->shape, layout->strides,
        PyArray_BYTES(a) + offset, PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, NULL);
    if (found != NULL && PyArray_SetBaseObject((PyArrayObject *)found, Py_NewRef(a)) < 0) {
        Py_CLEAR(found);
    }
    return found;
}

/* A tuple of numbers, none of them negative, as sizes; how many they are, or -1. */
static int sizes_from(PyObject *given, npy_intp *sizes)
{
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) > NPY_MAXDIMS) {
        return -1;
    }
    int count = (int)PyTuple_GET_SIZE(given);
    for (int i = 0; i < count; i++) {
        PyObject *one = PyTuple_GET_ITEM(given, i);
        sizes[i] = PyLong_CheckExact(one) ? (npy_intp)PyLong_AsSsize_t(one) : -1;
        if (sizes[i] < 0) {
            PyErr_Clear();
            return -1;
        }
    }
    return count;
}

/* A number that is not negative; -1 for anything else. */
static npy_intp whole_from(PyObject *given)
{
    npy_intp found = PyLong_CheckExact(given) ? (npy_intp)PyLong_AsSsize_t(given) : -1;
    if (found < 0) {
        PyErr_Clear();
        return -1;
    }
    return found;
}

/* a, size */
static PyObject *view(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 2);
    Layout made;
    if (a == NULL || !PyArray_IS_C_CONTIGUOUS(a) || PyArray_SIZE(a) == 0 ||
        (made.ndim = sizes_from(args[1], made.shape)) < 0) {
        return declined();
    }
    npy_intp elements = 1, size = PyArray_SIZE(a);
    for (int d = made.ndim - 1; d >= 0; d--) {
        made.strides[d] = elements * PyArray_ITEMSIZE(a);
        if (made.shape[d] == 0 || made.shape[d] > size / elements) {
            return declined();
        }
        elements *= made.shape[d];
    }
    return elements == size ? view_of(a, &made, 0) : declined();
}

/* a, dims */
static PyObject *permute(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 2);
    npy_intp dims[NPY_MAXDIMS];
    if (a == NULL || sizes_from(args[1], dims) != PyArray_NDIM(a)) {
        return declined();
    }
    Layout made;
    made.ndim = PyArray_NDIM(a);
    npy_bool seen[NPY_MAXDIMS] = {0};
    for (int d = 0; d < made.ndim; d++) {
        if (dims[d] >= made.ndim || seen[dims[d]]) {
            return declined();
        }
        seen[dims[d]] = 1;
        made.shape[d] = PyArray_DIM(a, dims[d]);
        made.strides[d] = PyArray_STRIDE(a, dims[d]);
    }
    return view_of(a, &made, 0);
}

static PyObject *exchanged(PyArrayObject *a, npy_intp first, npy_intp second)
{
    Layout made = layout_of(a);
    made.shape[first] = PyArray_DIM(a, second);
    made.strides[first] = PyArray_STRIDE(a, second);
    made.shape[second] = PyArray_DIM(a, first);
    made.strides[second] = PyArray_STRIDE(a, first);
    return view_of(a, &made, 0);
}

/* a, two dimensions */
static PyObject *transpose(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 3);
    if (a == NULL) {
        return declined();
    }
    npy_intp first = whole_from(args[1]), second = whole_from(args[2]);
    int ndim = PyArray_NDIM(a);
    return first < 0 || first >= ndim || second < 0 || second >= ndim
               ? declined()
               : exchanged(a, first, second);
}

static PyObject *t(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 1);
    return a == NULL || PyArray_NDIM(a) != 2 ? declined() : exchanged(a, 0, 1);
}

/* a, size */
static PyObject *expand(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 2);
    Layout made;
    if (a == NULL || (made.ndim = sizes_from(args[1], made.shape)) < PyArray_NDIM(a)) {
        return declined();
    }
    int added = made.ndim - PyArray_NDIM(a);
    for (int d = 0; d < made.ndim; d++) {
        npy_intp own = d < added ? 1 : PyArray_DIM(a, d - added);
        if (own != made.shape[d] && own != 1) {
            return declined();
        }
        made.strides[d] = d >= added && own == made.shape[d] ? PyArray_STRIDE(a, d - added) : 0;
    }
    return view_of(a, &made, 0);
}

/* `a` without dimension `dim`, at an index of it; `dim` and the index are within their bounds */
static PyObject *selected(PyArrayObject *a, npy_intp dim, npy_intp index)
{
    Layout made = layout_of(a);
    made.ndim--;
    for (npy_intp d = dim; d < made.ndim; d++) {
        made.shape[d] = made.shape[d + 1];
        made.strides[d] = made.strides[d + 1];
    }
    return view_of(a, &made, index * PyArray_STRIDE(a, dim));
}

/* a, dim, index */
static PyObject *select_view(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 3);
    if (a == NULL) {
        return declined();
    }
    npy_intp dim = whole_from(args[1]), index = whole_from(args[2]);
    return dim < 0 || dim >= PyArray_NDIM(a) || index < 0 || index >= PyArray_DIM(a, dim)
               ? declined()
               : selected(a, dim, index);
}

/* a, dim */
static PyObject *unbind(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 2);
    npy_intp dim = a == NULL ? -1 : whole_from(args[1]);
    if (dim < 0 || dim >= PyArray_NDIM(a)) {
        return declined();
    }
    npy_intp length = PyArray_DIM(a, dim);
    PyObject *parts = PyTuple_New(length);
    for (npy_intp i = 0; parts != NULL && i < length; i++) {
        PyObject *part = selected(a, dim, i);
        if (part == NULL) {
            Py_CLEAR(parts);
        } else {
            PyTuple_SET_ITEM(parts, i, part);
        }
    }
    return parts;
}

/* a, sizes, dim */
static PyObject *split(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 3);
    npy_intp dim = a == NULL ? -1 : whole_from(args[2]);
    if (dim < 0 || dim >= PyArray_NDIM(a) || !PyTuple_Check(args[1])) {
        return declined();
    }
    Py_ssize_t length = PyTuple_GET_SIZE(args[1]);
    npy_intp start = 0;
    Layout made = layout_of(a);
    PyObject *parts = PyTuple_New(length);
    for (Py_ssize_t i = 0; parts != NULL && i < length; i++) {
        npy_intp size = whole_from(PyTuple_GET_ITEM(args[1], i));
        if (size < 0 || size > PyArray_DIM(a, dim) - start) {
            Py_DECREF(parts);
            return declined();
        }
        made.shape[dim] = size;
        PyObject *part = view_of(a, &made, start * PyArray_STRIDE(a, dim));
        if (part == NULL) {
            Py_CLEAR(parts);
        } else {
            PyTuple_SET_ITEM(parts, i, part);
        }
        start += size;
    }
    return parts;
}

/* a, dim */
static PyObject *unsqueeze(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 2);
    npy_intp dim = a == NULL ? -1 : whole_from(args[1]);
    if (dim < 0 || dim > PyArray_NDIM(a) || PyArray_NDIM(a) == NPY_MAXDIMS) {
        return declined();
    }
    Layout made = layout_of(a);
    for (npy_intp d = made.ndim++; d > dim; d--) {
        made.shape[d] = made.shape[d - 1];
        made.strides[d] = made.strides[d - 1];
    }
    made.shape[dim] = 1;
    made.strides[dim] = 0;
    return view_of(a, &made, 0);
}

/* a, dim, start, end, step */
static PyObject *slice(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = viewed(args, count, 5);
    if (a == NULL) {
        return declined();
    }
    npy_intp dim = whole_from(args[1]), start = whole_from(args[2]), end = whole_from(args[3]);
    npy_intp step = whole_from(args[4]);
    if (dim < 0 || dim >= PyArray_NDIM(a) || start < 0 || end < start || step < 1 ||
        end > PyArray_DIM(a, dim)) {
        return declined();
    }
    Layout made = layout_of(a);
    made.shape[dim] = (end - start + step - 1) / step;
    made.strides[dim] *= step;
    return view_of(a, &made, start * PyArray_STRIDE(a, dim));
}

#endif
