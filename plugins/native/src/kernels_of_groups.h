/* Group normalisation and its gradients. */

#ifndef PLUGRAD_KERNELS_OF_GROUPS_H
#define PLUGRAD_KERNELS_OF_GROUPS_H

#include "kernels_of_sums.h"
#include "kinds.h"

/* The sizes of a contiguous array that is not empty, from samples, channels, elements of a channel
   and groups; whether they are its. */
static int are_groups(PyArrayObject *x, PyObject *const *sizes, Groups *w)
{
    npy_intp found[4];
    for (int i = 0; i < 4; i++) {
        found[i] = PyLong_Check(sizes[i]) ? PyLong_AsSsize_t(sizes[i]) : -1;
        if (found[i] <= 0 || found[i] > PyArray_SIZE(x)) {
            PyErr_Clear();
            return 0;
        }
    }
    w->samples = found[0];
    w->groups = found[3];
    w->channels = found[1] / found[3];
    w->size = found[2];
    return found[1] % found[3] == 0 && PyArray_SIZE(x) % found[0] == 0 &&
           PyArray_SIZE(x) / found[0] % found[1] == 0 &&
           PyArray_SIZE(x) / found[0] / found[1] == found[2];
}

static void share_groups(const Groups *w, PyArrayObject *x, npy_intp least)
{
    npy_intp size = PyArray_SIZE(x), count = w->samples * w->groups;
    SHARING(size, least, OF_TYPE(x, group_norm), w, count, rows_of_part(w->channels * w->size));
}

/* x, weight, bias, samples, channels, size, groups, eps */
static PyObject *group_norm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Groups w = {0};
    PyArrayObject *weight, *bias, *x = count == 8 ? served(args[0]) : NULL;
    if (x == NULL || !are_groups(x, args + 3, &w) || !PyFloat_Check(args[7]) ||
        !optional_flat(args[1], x, w.groups * w.channels, &weight) ||
        !optional_flat(args[2], x, w.groups * w.channels, &bias)) {
        return declined();
    }
    npy_intp kept[] = {w.samples, w.groups};
    PyArrayObject *out = new_like(x);
    PyArrayObject *mean = new_array(2, kept, PyArray_TYPE(x));
    PyArrayObject *rstd = new_array(2, kept, PyArray_TYPE(x));
    if (out != NULL && mean != NULL && rstd != NULL) {
        w.x = DATA(x);
        w.weight = weight == NULL ? NULL : DATA(weight);
        w.bias = bias == NULL ? NULL : DATA(bias);
        w.mean = DATA(mean);
        w.rstd = DATA(rstd);
        w.out = DATA(out);
        w.eps = PyFloat_AS_DOUBLE(args[7]);
        share_groups(&w, x, SHARED);
    }
    PyObject *parts[] = {(PyObject *)out, (PyObject *)mean, (PyObject *)rstd};
    return results(3, parts);
}

/* The sum over samples of what channels have from each. A new reference. */
static PyArrayObject *over_samples(PyArrayObject *parts, npy_intp channels)
{
    PyArrayObject *out = new_array(1, &channels, PyArray_TYPE(parts));
    if (out != NULL) {
        Sums sums = {parts, out, PyArray_SIZE(parts) / channels, channels, 1.0};
        sum_columns(&sums);
    }
    return out;
}

/* grad, x, mean, rstd, weight, samples, channels, size, groups, mask of those that are wanted */
static PyObject *group_norm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Groups w = {0};
    PyArrayObject *mean, *rstd, *weight, *x = count == 10 ? served(args[1]) : NULL;
    if (x == NULL || !are_groups(x, args + 5, &w) ||
        !(PyTuple_Check(args[9]) || PyList_Check(args[9])) ||
        PySequence_Fast_GET_SIZE(args[9]) != 3 ||
        !optional_flat(args[2], x, w.samples * w.groups, &mean) || mean == NULL ||
        !optional_flat(args[3], x, w.samples * w.groups, &rstd) || rstd == NULL ||
        !optional_flat(args[4], x, w.groups * w.channels, &weight)) {
        return declined();
    }
    int wanted[3];
    for (int part = 0; part < 3; part++) {
        wanted[part] = PySequence_Fast_GET_ITEM(args[9], part) == Py_True;
    }
    PyArrayObject *grad = gradient_like(args[0], x);
    if (grad == NULL) {
        return failed();
    }
    npy_intp channels = w.groups * w.channels, each = w.samples * channels;
    PyArrayObject *along = new_array(1, &each, PyArray_TYPE(x));
    PyArrayObject *shift = new_array(1, &each, PyArray_TYPE(x));
    PyArrayObject *out = wanted[0] ? new_like(x) : NULL;
    PyObject *found = NULL;
    if (along != NULL && shift != NULL && (out != NULL || !wanted[0])) {
        w.x = DATA(x);
        w.grad = DATA(grad);
        w.mean = DATA(mean);
        w.rstd = DATA(rstd);
        w.weight = weight == NULL ? NULL : DATA(weight);
        w.out = out == NULL ? NULL : DATA(out);
        w.along = DATA(along);
        w.shift = DATA(shift);
        if (wanted[0] || wanted[1] || wanted[2]) {
            share_groups(&w, x, SHARED);
        }
        PyObject *parts[] = {wanted[0] ? Py_NewRef((PyObject *)out) : Py_NewRef(Py_None),
                             wanted[1] ? (PyObject *)over_samples(along, channels)
                                       : Py_NewRef(Py_None),
                             wanted[2] ? (PyObject *)over_samples(shift, channels)
                                       : Py_NewRef(Py_None)};
        found = results(3, parts);
    }
    Py_XDECREF(out);
    Py_XDECREF(along);
    Py_XDECREF(shift);
    Py_DECREF(grad);
    return found;
}

#endif
