/* Batch normalisation and its gradients. */

#ifndef PLUGRAD_KERNELS_OF_CHANNELS_H
#define PLUGRAD_KERNELS_OF_CHANNELS_H

#include "kinds.h"

static void do_batch_norm_float(const void *work, Py_ssize_t from, Py_ssize_t to)
{
    batch_norm_float(work, from, to);
}

static void do_batch_norm_double(const void *work, Py_ssize_t from, Py_ssize_t to)
{
    batch_norm_double(work, from, to);
}

/* Where channels come last in memory, as in what is called channels last. */
static int has_channels_last(PyArrayObject *a)
{
    int ndim = PyArray_NDIM(a);
    npy_intp step = PyArray_ITEMSIZE(a);
    if (ndim < 3 || PyArray_STRIDE(a, 1) != step) {
        return 0;
    }
    step *= PyArray_DIM(a, 1);
    for (int d = ndim - 1; d >= 0; d -= d == 2 ? 2 : 1) {
        if (PyArray_DIM(a, d) > 1 && PyArray_STRIDE(a, d) != step) {
            return 0;
        }
        step *= PyArray_DIM(a, d);
    }
    return 1;
}

/* An array that is not empty, of (rows, channels) or more dimensions, as (rows, channels, size) in
   `w`; NULL without an error if there is none such. */
static PyArrayObject *with_channels(PyObject *given, Channels *w)
{
    if (!PyArray_CheckExact(given)) {
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)given;
    int ndim = PyArray_NDIM(a);
    if (!is_real(a) || ndim < 2 || PyArray_SIZE(a) == 0 || !PyArray_ISALIGNED(a) ||
        !PyArray_ISNOTSWAPPED(a)) {
        return NULL;
    }
    npy_intp size = product(a, 2, ndim);
    w->channels = PyArray_DIM(a, 1);
    if (PyArray_IS_C_CONTIGUOUS(a)) {
        w->rows = PyArray_DIM(a, 0);
        w->size = size;
        return a;
    }
    w->rows = PyArray_DIM(a, 0) * size;
    w->size = 1;
    return has_channels_last(a) ? a : NULL;
}

/* The gradient of the output that lies in memory as `x` does. A new reference; NULL with an error,
   or without one if it is not served. */
static PyArrayObject *gradient_beside(PyObject *given, PyArrayObject *x)
{
    if (PyArray_IS_C_CONTIGUOUS(x)) {
        return gradient_like(given, x);
    }
    Channels other;
    PyArrayObject *a = with_channels(given, &other);
    int same = a != NULL && PyArray_TYPE(a) == PyArray_TYPE(x) && PyArray_SAMESHAPE(a, x) &&
               has_channels_last(a);
    return same ? (PyArrayObject *)Py_NewRef(a) : NULL;
}

/* Threads share channels; in columns, those of some lines of the cache. */
static void share_channels(const Channels *w, PyArrayObject *x)
{
    npy_intp all = w->rows * w->channels * w->size;
    npy_intp step = rows_of_part(w->rows * w->size);
    if (w->size == 1 && step < 64) {
        step = 64;
    }
    SHARING(all, LIGHT_SHARED, OF_TYPE(x, do_batch_norm), w, w->channels, step);
}

/* x, weight, bias, running_mean, running_var, training, momentum, eps */
static PyObject *batch_norm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Channels w = {0};
    PyArrayObject *x = count == 8 ? with_channels(args[0], &w) : NULL;
    PyArrayObject *given[4];
    if (x == NULL || !PyBool_Check(args[5]) || args[6] == Py_None || args[7] == Py_None ||
        !number_or(args[6], 0, &w.momentum) || !number_or(args[7], 0, &w.eps)) {
        return declined();
    }
    w.training = args[5] == Py_True;
    for (int i = 0; i < 4; i++) {
        if (!optional_flat(args[i + 1], x, w.channels, given + i)) {
            return declined();
        }
    }
    for (int i = 2; i < 4; i++) {
        if (given[i] == NULL ? !w.training : w.training && !PyArray_ISWRITEABLE(given[i])) {
            return declined();
        }
    }
    w.x = DATA(x);
    w.weight = given[0] == NULL ? NULL : DATA(given[0]);
    w.bias = given[1] == NULL ? NULL : DATA(given[1]);
    w.running_mean = given[2] == NULL ? NULL : DATA(given[2]);
    w.running_var = given[3] == NULL ? NULL : DATA(given[3]);
    npy_intp kept = w.training ? w.channels : 0;
    PyArrayObject *out = new_in_order_of(x);
    PyArrayObject *mean = new_array(1, &kept, PyArray_TYPE(x));
    PyArrayObject *rstd = new_array(1, &kept, PyArray_TYPE(x));
    if (out != NULL && mean != NULL && rstd != NULL) {
        w.out = DATA(out);
        w.made[0] = DATA(mean);
        w.made[1] = DATA(rstd);
        share_channels(&w, x);
    }
    PyObject *parts[] = {(PyObject *)out, (PyObject *)mean, (PyObject *)rstd};
    return results(3, parts);
}

/* grad, x, weight, running_mean, running_var, mean, rstd, training, eps, mask */
static PyObject *batch_norm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Channels w = {0};
    PyArrayObject *x = count == 10 ? with_channels(args[1], &w) : NULL;
    if (x == NULL || !PyBool_Check(args[7]) || args[8] == Py_None ||
        !number_or(args[8], 0, &w.eps) ||
        !(PyTuple_Check(args[9]) || PyList_Check(args[9])) ||
        PySequence_Fast_GET_SIZE(args[9]) != 3) {
        return declined();
    }
    w.training = args[7] == Py_True;
    PyArrayObject *weight, *center, *spread;
    PyObject *const *statistics = args + (w.training ? 5 : 3);
    if (!optional_flat(args[2], x, w.channels, &weight) ||
        !optional_flat(statistics[0], x, w.channels, &center) || center == NULL ||
        !optional_flat(statistics[1], x, w.channels, &spread) || spread == NULL) {
        return declined();
    }
    PyArrayObject *grad = gradient_beside(args[0], x);
    if (grad == NULL) {
        return failed();
    }
    w.x = DATA(x);
    w.grad = DATA(grad);
    w.weight = weight == NULL ? NULL : DATA(weight);
    w.mean = w.running_mean = DATA(center);
    w.rstd = w.running_var = DATA(spread);
    PyObject *parts[3];
    void *made[3];
    int complete = 1;
    for (int part = 0; part < 3; part++) {
        made[part] = NULL;
        if (PySequence_Fast_GET_ITEM(args[9], part) != Py_True) {
            parts[part] = Py_NewRef(Py_None);
            continue;
        }
        parts[part] = (PyObject *)(part == 0 ? new_in_order_of(x)
                                             : new_array(1, &w.channels, PyArray_TYPE(x)));
        complete &= parts[part] != NULL;
        made[part] = parts[part] == NULL ? NULL : DATA((PyArrayObject *)parts[part]);
    }
    if (complete) {
        w.out = made[0];
        w.made[0] = made[1];
        w.made[1] = made[2];
        share_channels(&w, x);
    }
    Py_DECREF(grad);
    return results(3, parts);
}

#endif
