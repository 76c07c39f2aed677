/* nll_loss and mse_loss, and their gradients. */

#ifndef PLUGRAD_KERNELS_OF_LOSSES_H
#define PLUGRAD_KERNELS_OF_LOSSES_H

#include "kinds.h"

enum Reduction { NONE, MEAN, SUM, UNKNOWN };

static enum Reduction reduction_of(PyObject *given)
{
    if (is_word(given, "mean")) {
        return MEAN;
    }
    return is_word(given, "sum") ? SUM : is_word(given, "none") ? NONE : UNKNOWN;
}

/* The targets of a batch (N, C), int64 of shape (N), or NULL without an error. */
static PyArrayObject *targets_of(PyObject *given, PyArrayObject *x)
{
    if (!PyArray_CheckExact(given) || PyArray_NDIM(x) != 2) {
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)given;
    int fits = PyArray_TYPE(a) == NPY_INT64 && is_plain(a) && PyArray_NDIM(a) == 1;
    return fits && PyArray_DIM(a, 0) == PyArray_DIM(x, 0) ? a : NULL;
}

/* x, target, weight, reduction, ignore_index */
static PyObject *nll_loss(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *x = count == 5 ? served(args[0]) : NULL;
    PyArrayObject *weight, *target = x == NULL ? NULL : targets_of(args[1], x);
    enum Reduction reduction = count == 5 ? reduction_of(args[3]) : UNKNOWN;
    if (target == NULL || reduction == UNKNOWN || PyArray_SIZE(x) == 0 ||
        !optional_flat(args[2], x, PyArray_DIM(x, 1), &weight)) {
        return declined();
    }
    long long ignored = PyLong_AsLongLong(args[4]);
    if (ignored == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return declined();
    }
    npy_intp rows = PyArray_DIM(x, 0), classes = PyArray_DIM(x, 1);
    PyArrayObject *losses = NULL;
    if (reduction == NONE && (losses = new_array(1, &rows, PyArray_TYPE(x))) == NULL) {
        return NULL;
    }
    double loss = 0, total = 0;
    const void *weights = weight == NULL ? NULL : DATA(weight);
    if (OF_TYPE(x, nll_loss)(DATA(x), DATA(target), weights, losses == NULL ? NULL : DATA(losses),
                             rows, classes, ignored, &loss, &total) < 0) {
        Py_XDECREF(losses);
        return declined(); /* the plain kernel says what is wrong */
    }
    if (reduction != NONE) {
        losses = new_number(reduction == MEAN ? loss / total : loss, PyArray_TYPE(x));
    }
    PyObject *parts[] = {(PyObject *)losses, (PyObject *)new_number(total, PyArray_TYPE(x))};
    return results(2, parts);
}

/* grad, x, target, weight, reduction, ignore_index, total weight */
static PyObject *nll_loss_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *x = count == 7 ? served(args[1]) : NULL;
    PyArrayObject *grad, *total, *weight, *target = x == NULL ? NULL : targets_of(args[2], x);
    enum Reduction reduction = count == 7 ? reduction_of(args[4]) : UNKNOWN;
    if (target == NULL || reduction == UNKNOWN || PyArray_SIZE(x) == 0) {
        return declined();
    }
    npy_intp rows = PyArray_DIM(x, 0), classes = PyArray_DIM(x, 1);
    if (!optional_flat(args[0], x, reduction == NONE ? rows : 1, &grad) || grad == NULL ||
        !optional_flat(args[3], x, classes, &weight) || !optional_flat(args[6], x, 1, &total) ||
        total == NULL) {
        return declined();
    }
    long long ignored = PyLong_AsLongLong(args[5]);
    if (ignored == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return declined();
    }
    PyArrayObject *out = new_zeros(2, PyArray_DIMS(x), PyArray_TYPE(x));
    if (out == NULL) {
        return NULL;
    }
    const void *weights = weight == NULL ? NULL : DATA(weight);
    if (OF_TYPE(x, nll_loss_backward)(DATA(grad), reduction == NONE, DATA(target), weights,
                                      DATA(out), rows, classes, ignored,
                                      reduction == MEAN ? number_of(total) : 1.0) < 0) {
        Py_DECREF(out);
        return declined();
    }
    return (PyObject *)out;
}

/* a, b, reduction */
static PyObject *mse_loss(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 3 ? served(args[0]) : NULL;
    PyArrayObject *b = a == NULL ? NULL : served_like(args[1], a);
    enum Reduction reduction = count == 3 ? reduction_of(args[2]) : UNKNOWN;
    if (b == NULL || !PyArray_SAMESHAPE(a, b) || PyArray_SIZE(a) == 0 ||
        (reduction != MEAN && reduction != SUM)) {
        return declined();
    }
    npy_intp n = PyArray_SIZE(a);
    double total;
    RELEASING_LOCK(n, total = OF_TYPE(a, squared_difference)(DATA(a), DATA(b), n));
    return (PyObject *)new_number(reduction == MEAN ? total / (double)n : total, PyArray_TYPE(a));
}

/* grad, a, b, reduction */
static PyObject *mse_loss_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *grad, *a = count == 4 ? served(args[1]) : NULL;
    PyArrayObject *b = a == NULL ? NULL : served_like(args[2], a);
    enum Reduction reduction = count == 4 ? reduction_of(args[3]) : UNKNOWN;
    if (b == NULL || !PyArray_SAMESHAPE(a, b) || PyArray_SIZE(a) == 0 ||
        (reduction != MEAN && reduction != SUM) || !optional_flat(args[0], a, 1, &grad) ||
        grad == NULL) {
        return declined();
    }
    npy_intp n = PyArray_SIZE(a);
    double factor = number_of(grad) * (reduction == MEAN ? 2.0 / (double)n : 2.0);
    PyArrayObject *out = new_like(a);
    if (out != NULL) {
        RELEASING_LOCK(n, OF_TYPE(a, scaled_difference)(DATA(a), DATA(b), DATA(out), n, factor));
    }
    return (PyObject *)out;
}

#endif
