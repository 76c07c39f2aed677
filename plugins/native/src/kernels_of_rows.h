/* Kernels along the last dimensions: softmax, layer_norm, the largest element, nll_loss. */

#ifndef PLUGRAD_KERNELS_OF_ROWS_H
#define PLUGRAD_KERNELS_OF_ROWS_H

#include "kinds.h"

typedef void (*RowLoop)(const void *, void *, npy_intp, npy_intp);
typedef void (*RowGradientLoop)(const void *, const void *, void *, npy_intp, npy_intp);

/* a, dim, half_to_float */
static PyObject *along_rows(PyObject *const *args, Py_ssize_t count, RowLoop of_float,
                            RowLoop of_double)
{
    PyArrayObject *a = count == 3 ? served(args[0]) : NULL;
    int dim;
    if (a == NULL || !is_last(args[1], a, &dim) || PyArray_SIZE(a) == 0) {
        return declined();
    }
    PyArrayObject *out = new_like(a);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = PyArray_DIM(a, dim), rows = PyArray_SIZE(a) / n;
    RowLoop loop = PyArray_TYPE(a) == NPY_FLOAT ? of_float : of_double;
    RELEASING_LOCK(rows * n, loop(DATA(a), DATA(out), rows, n));
    return (PyObject *)out;
}

/* grad, result, dim, dtype of the input */
static PyObject *gradient_along_rows(PyObject *const *args, Py_ssize_t count,
                                     RowGradientLoop of_float, RowGradientLoop of_double)
{
    PyArrayObject *result = count == 4 ? served(args[1]) : NULL;
    int dim;
    if (result == NULL || !is_last(args[2], result, &dim) || PyArray_SIZE(result) == 0 ||
        !is_dtype_of(args[3], result)) {
        return declined();
    }
    PyArrayObject *grad = gradient_like(args[0], result);
    if (grad == NULL) {
        return failed();
    }
    PyArrayObject *out = new_like(result);
    if (out != NULL) {
        npy_intp n = PyArray_DIM(result, dim), rows = PyArray_SIZE(result) / n;
        RowGradientLoop loop = PyArray_TYPE(result) == NPY_FLOAT ? of_float : of_double;
        RELEASING_LOCK(rows * n, loop(DATA(grad), DATA(result), DATA(out), rows, n));
    }
    Py_DECREF(grad);
    return (PyObject *)out;
}

static PyObject *softmax(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return along_rows(args, count, softmax_float, softmax_double);
}

static PyObject *log_softmax(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return along_rows(args, count, log_softmax_float, log_softmax_double);
}

static PyObject *softmax_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return gradient_along_rows(args, count, softmax_backward_float, softmax_backward_double);
}

static PyObject *log_softmax_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return gradient_along_rows(args, count, log_softmax_backward_float,
                               log_softmax_backward_double);
}

/* How many dimensions are normalised, if `shape` is that of an array's last ones; else 0. */
static int normalized_dims(PyObject *shape, PyArrayObject *x)
{
    if (!PyTuple_Check(shape) && !PyList_Check(shape)) {
        return 0;
    }
    Py_ssize_t last = PySequence_Fast_GET_SIZE(shape);
    if (last > PyArray_NDIM(x)) {
        return 0;
    }
    for (Py_ssize_t d = 0; d < last; d++) {
        PyObject *size = PySequence_Fast_GET_ITEM(shape, d);
        if (!PyLong_Check(size) ||
            PyLong_AsLongLong(size) != PyArray_DIM(x, PyArray_NDIM(x) - last + d)) {
            PyErr_Clear();
            return 0;
        }
    }
    return (int)last;
}

/* x, shape, weight, bias, eps */
static PyObject *layer_norm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *weight, *bias, *x = count == 5 ? served(args[0]) : NULL;
    int last = x == NULL ? 0 : normalized_dims(args[1], x);
    if (last == 0 || PyArray_SIZE(x) == 0 || !PyFloat_Check(args[4])) {
        return declined();
    }
    int ndim = PyArray_NDIM(x);
    npy_intp n = product(x, ndim - last, ndim), rows = PyArray_SIZE(x) / n;
    if (!optional_flat(args[2], x, n, &weight) || !optional_flat(args[3], x, n, &bias)) {
        return declined();
    }
    npy_intp kept[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++) {
        kept[d] = d < ndim - last ? PyArray_DIM(x, d) : 1;
    }
    PyArrayObject *out = new_like(x);
    PyArrayObject *mean = new_array(ndim, kept, PyArray_TYPE(x));
    PyArrayObject *rstd = new_array(ndim, kept, PyArray_TYPE(x));
    if (out != NULL && mean != NULL && rstd != NULL) {
        const void *weights = weight == NULL ? NULL : DATA(weight);
        const void *biases = bias == NULL ? NULL : DATA(bias);
        RELEASING_LOCK(rows * n,
                       OF_TYPE(x, layer_norm)(DATA(x), weights, biases, DATA(out), DATA(mean),
                                              DATA(rstd), rows, n, PyFloat_AS_DOUBLE(args[4])));
    }
    PyObject *parts[] = {(PyObject *)out, (PyObject *)mean, (PyObject *)rstd};
    return results(3, parts);
}

/* grad, x, shape, mean, rstd, weight, bias, mask of the gradients that are wanted */
static PyObject *layer_norm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *mean, *rstd, *weight, *x = count == 8 ? served(args[1]) : NULL;
    int last = x == NULL ? 0 : normalized_dims(args[2], x);
    if (last == 0 || PyArray_SIZE(x) == 0 ||
        !(PyTuple_Check(args[7]) || PyList_Check(args[7])) ||
        PySequence_Fast_GET_SIZE(args[7]) != 3) {
        return declined();
    }
    int ndim = PyArray_NDIM(x);
    npy_intp n = product(x, ndim - last, ndim), rows = PyArray_SIZE(x) / n;
    if (!optional_flat(args[3], x, rows, &mean) || mean == NULL ||
        !optional_flat(args[4], x, rows, &rstd) || rstd == NULL ||
        !optional_flat(args[5], x, n, &weight)) {
        return declined();
    }
    PyArrayObject *grad = gradient_like(args[0], x);
    if (grad == NULL) {
        return failed();
    }
    PyObject *parts[3];
    for (int part = 0; part < 3; part++) {
        if (PySequence_Fast_GET_ITEM(args[7], part) != Py_True) {
            parts[part] = Py_NewRef(Py_None);
            continue;
        }
        PyArrayObject *out = part == 0
                                 ? new_like(x)
                                 : new_array(last, PyArray_DIMS(x) + ndim - last, PyArray_TYPE(x));
        parts[part] = (PyObject *)out;
        if (out == NULL) {
            continue;
        }
        const void *weights = weight == NULL ? NULL : DATA(weight);
        if (part == 0) {
            RELEASING_LOCK(rows * n, OF_TYPE(x, layer_norm_to_input)(
                                         DATA(grad), DATA(x), DATA(mean), DATA(rstd), weights,
                                         DATA(out), rows, n));
        } else if (part == 1) {
            RELEASING_LOCK(rows * n,
                           OF_TYPE(x, layer_norm_to_weight)(DATA(grad), DATA(x), DATA(mean),
                                                            DATA(rstd), DATA(out), rows, n));
        } else {
            RELEASING_LOCK(rows * n,
                           OF_TYPE(x, sum_columns)(DATA(grad), DATA(out), rows, n, 1.0));
        }
    }
    Py_DECREF(grad);
    return results(3, parts);
}

/* The shape of a reduction along a dimension, in `made`; how many dimensions it has. */
static int reduced_shape(PyArrayObject *a, int dim, int keepdim, npy_intp *made)
{
    int ndim = 0;
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        if (d != dim || keepdim) {
            made[ndim++] = d == dim ? 1 : PyArray_DIM(a, d);
        }
    }
    return ndim;
}

/* Positions of the largest elements along the last dimension, and these, if they are wanted. */
static PyObject *largest_of(PyObject *const *args, int with_values)
{
    PyArrayObject *a = served(args[0]);
    int dim;
    if (a == NULL || !is_last(args[1], a, &dim) || PyArray_SIZE(a) == 0) {
        return declined();
    }
    npy_intp shape[NPY_MAXDIMS];
    int ndim = reduced_shape(a, dim, args[2] == Py_True, shape);
    npy_intp n = PyArray_DIM(a, dim), rows = PyArray_SIZE(a) / n;
    PyArrayObject *values = with_values ? new_array(ndim, shape, PyArray_TYPE(a)) : NULL;
    PyArrayObject *positions = new_array(ndim, shape, NPY_INT64);
    if (positions != NULL && (values != NULL || !with_values)) {
        void *target = with_values ? DATA(values) : NULL;
        RELEASING_LOCK(rows * n,
                       OF_TYPE(a, max_rows)(DATA(a), target, DATA(positions), rows, n));
    }
    PyObject *parts[] = {(PyObject *)values, (PyObject *)positions};
    return with_values ? results(2, parts) : (PyObject *)positions;
}

/* a, dim, keepdim */
static PyObject *max_dim(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count == 3 ? largest_of(args, 1) : declined();
}

/* a, dim or None, keepdim */
static PyObject *argmax(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count == 3 ? largest_of(args, 0) : declined();
}

#endif
