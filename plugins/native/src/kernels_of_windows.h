/* Pooling by the largest element or the mean, and its gradients. */

#ifndef PLUGRAD_KERNELS_OF_WINDOWS_H
#define PLUGRAD_KERNELS_OF_WINDOWS_H

#include "kinds.h"

/* Places of a plane at most, so that their numbers are int32. */
#define MOST_PLACES ((npy_intp)1 << 29)

/* Python numbers from `least` to below 2^29, in one of the arrays of `Sliding` as the last `count`
   dimensions; whether they are such. */
static int few_numbers(PyObject *given, int count, npy_intp least, npy_intp *found)
{
    for (int i = 0; i < count; i++) {
        PyObject *one = PyLong_Check(given) ? given : PyTuple_GET_ITEM(given, i);
        int overflow = 0;
        long number = PyLong_Check(one) ? PyLong_AsLongAndOverflow(one, &overflow) : -1;
        if (overflow || number < (long)least || number > (long)MOST_PLACES) {
            return 0;
        }
        found[3 - count + i] = (npy_intp)number;
    }
    return 1;
}

/* Whether each window reads something, along a dimension, and little behind the padding. What has
   no effect becomes 1. */
static int slides(Sliding *w, int d)
{
    npy_intp first, last = w->out[d] - 1, size = w->sizes[d];
    w->stride[d] = last == 0 ? 1 : w->stride[d];
    w->dilation[d] = w->kernel[d] == 1 ? 1 : w->dilation[d];
    if (2 * w->padding[d] > w->kernel[d] ||
        (w->kernel[d] - 1) * w->dilation[d] > size + 2 * w->padding[d] ||
        last * w->stride[d] - w->padding[d] >= size) {
        return 0;
    }
    for (npy_intp i = 0; i <= last && i * w->stride[d] < w->padding[d]; i++) {
        if (taps_inside(w, d, i, &first) <= first) {
            return 0;
        }
    }
    return 1;
}

/* Which parts a dimension is taken apart to. */
static void plan_parts(const Sliding *w, int d, Apart *apart)
{
    apart->parts = 0;
    for (npy_intp tap = 0; tap < w->kernel[d]; tap++) {
        npy_intp place = tap * w->dilation[d], before = 0;
        while (before < tap && (place - before * w->dilation[d]) % w->stride[d] != 0) {
            before++;
        }
        if (before == tap) {
            apart->first[apart->parts] = tap;
        }
        apart->part[tap] = before == tap ? apart->parts++ : apart->part[before];
        apart->shift[tap] = place / w->stride[d];
    }
    apart->length = w->out[d] + apart->shift[w->kernel[d] - 1];
}

/* Windows over the last dimensions of an array of a shape, from kernel, stride, padding, dilation
   and how many there are: tuples, or numbers for the last dimension alone. Their rank, or 0 if they
   are not served. */
static int sliding_over(const npy_intp *shape, int ndim, PyObject *const *args, Sliding *w)
{
    int rank = PyTuple_Check(args[0]) ? (int)PyTuple_GET_SIZE(args[0]) : 1;
    if (rank < 1 || rank > 3 || rank > ndim) {
        return 0;
    }
    npy_intp *fields[] = {w->kernel, w->stride, w->padding, w->dilation, w->out};
    for (int i = 0; i < 5; i++) {
        int is_tuple = PyTuple_Check(args[i]) && PyTuple_GET_SIZE(args[i]) == rank;
        if (!is_tuple && !(rank == 1 && PyLong_Check(args[i]))) {
            return 0;
        }
        for (int d = 0; d < 3 - rank; d++) {
            fields[i][d] = i != 2;
        }
        if (!few_numbers(args[i], rank, i != 2, fields[i])) {
            return 0;
        }
    }
    w->area = w->windows = 1;
    for (int d = 0; d < 3; d++) {
        w->sizes[d] = d < 3 - rank ? 1 : shape[ndim - 3 + d];
        if (w->sizes[d] == 0 || w->sizes[d] > MOST_PLACES / w->area || !slides(w, d)) {
            return 0;
        }
        w->area *= w->sizes[d];
        w->windows *= w->out[d];
    }
    if (w->kernel[1] > MOST_TAPS || w->kernel[2] > MOST_TAPS) {
        return 0;
    }
    plan_parts(w, 1, &w->lines);
    plan_parts(w, 2, &w->columns);
    npy_intp all = w->out[1] * w->columns.length;
    w->part = w->lines.length * w->columns.length;
    w->reach = (all + VECTOR - 1) / VECTOR * VECTOR;
    w->plane = w->lines.parts * w->columns.parts * w->part + w->columns.length + VECTOR;
    return rank;
}

/* A new array: the leading dimensions of `a`, and then the windows. */
static PyArrayObject *new_of_windows(PyArrayObject *a, int rank, const Sliding *w, int type)
{
    npy_intp shape[NPY_MAXDIMS];
    int ndim = PyArray_NDIM(a);
    for (int d = 0; d < ndim; d++) {
        shape[d] = d < ndim - rank ? PyArray_DIM(a, d) : w->out[3 - ndim + d];
    }
    return new_array(ndim, shape, type);
}

/* Shares planes among threads, from `least` elements on. NULL with an error, or if a position is
   none; else `out`, whose reference is taken over. */
static PyObject *pooled(Sliding *w, Part part, PyArrayObject *out, npy_intp planes, npy_intp least)
{
    int problem = 0;
    npy_intp most = w->area > w->windows ? w->area : w->windows;
    w->failed = &problem;
    least = is_whole(w) ? LIGHT_SHARED : least;
    SHARING(planes * most, least, part, w, planes, rows_of_part(most));
    if (problem) {
        Py_DECREF(out);
        return problem == 1 ? PyErr_NoMemory() : NULL;
    }
    return (PyObject *)out;
}

/* x, kernel, stride, padding, dilation, out */
static PyObject *largest_of_windows(PyObject *const *args, Py_ssize_t count, int with_positions)
{
    Sliding w;
    PyArrayObject *x = count == 6 ? served(args[0]) : NULL;
    int rank = x == NULL || PyArray_SIZE(x) == 0
                   ? 0
                   : sliding_over(PyArray_DIMS(x), PyArray_NDIM(x), args + 1, &w);
    if (rank == 0) {
        return declined();
    }
    PyArrayObject *out = new_of_windows(x, rank, &w, PyArray_TYPE(x));
    PyArrayObject *positions = with_positions && out != NULL
                                   ? new_of_windows(x, rank, &w, NPY_INT64)
                                   : NULL;
    if (out == NULL || (with_positions && positions == NULL)) {
        Py_XDECREF(out);
        return NULL;
    }
    w.from = DATA(x);
    w.to = DATA(out);
    w.positions = positions == NULL ? NULL : DATA(positions);
    PyObject *found = pooled(&w, OF_TYPE(x, max_pool), out, PyArray_SIZE(x) / w.area, SHARED);
    if (!with_positions) {
        return found;
    }
    PyObject *parts[] = {found, (PyObject *)positions};
    return results(2, parts);
}

static PyObject *max_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return largest_of_windows(args, count, 1);
}

/* Windows side by side are fast in plugrad-cpu, by maxima of halves. */
#define MANY_WINDOWS (1 << 14)

static PyObject *max_pool1d(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *x = count == 6 ? served(args[0]) : NULL;
    if (x == NULL || (PyArray_SIZE(x) >= MANY_WINDOWS && PyLong_Check(args[2]) &&
                      PyLong_AsLong(args[2]) == 1)) {
        return failed();
    }
    return largest_of_windows(args, count, 0);
}

/* An array of float32 or float64 that is not empty, and contiguous; a new reference. NULL with an
   error, or without one if it is not served. */
static PyArrayObject *gradient_of_windows(PyObject *given)
{
    if (!PyArray_CheckExact(given)) {
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)given;
    if (!is_real(a) || PyArray_SIZE(a) == 0 || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) {
        return NULL;
    }
    return PyArray_GETCONTIGUOUS(a);
}

/* Windows over what the gradient of `grad` will be, whose shape is a tuple that is written to
   `shape`. Their rank, or 0 if they are not served. */
static int sliding_backwards(PyArrayObject *grad, PyObject *given, PyObject *const *args,
                             npy_intp *shape, Sliding *w)
{
    int ndim = PyArray_NDIM(grad);
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != ndim) {
        return 0;
    }
    for (int d = 0; d < ndim; d++) {
        npy_intp one[3];
        if (!PyLong_Check(PyTuple_GET_ITEM(given, d)) ||
            !few_numbers(PyTuple_GET_ITEM(given, d), 1, 1, one)) {
            return 0;
        }
        shape[d] = one[2];
    }
    int rank = sliding_over(shape, ndim, args, w);
    for (int d = 0; d < ndim; d++) {
        npy_intp size = d < ndim - rank ? shape[d] : w->out[3 - ndim + d];
        rank = PyArray_DIM(grad, d) == size ? rank : 0;
        if (rank == 0) {
            break;
        }
    }
    return rank;
}

/* grad, shape, positions, kernel, stride, padding, dilation, out */
static PyObject *max_pool_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Sliding w;
    npy_intp shape[NPY_MAXDIMS];
    PyArrayObject *grad = count == 8 ? gradient_of_windows(args[0]) : NULL;
    if (grad == NULL) {
        return failed();
    }
    PyArrayObject *positions = (PyArrayObject *)args[2], *out = NULL;
    PyObject *found = NULL;
    if (sliding_backwards(grad, args[1], args + 3, shape, &w) && PyArray_CheckExact(args[2]) &&
        PyArray_TYPE(positions) == NPY_INT64 && is_plain(positions) &&
        PyArray_SAMESHAPE(positions, grad) &&
        (out = new_array(PyArray_NDIM(grad), shape, PyArray_TYPE(grad))) != NULL) {
        w.from = DATA(grad);
        w.to = DATA(out);
        w.positions = DATA(positions);
        npy_intp planes = PyArray_SIZE(grad) / w.windows;
        found = pooled(&w, OF_TYPE(grad, max_pool_backward), out, planes, LIGHT_SHARED);
    }
    Py_DECREF(grad);
    return found == NULL ? failed() : found;
}

/* Whether padding counts, and the divisor, or None: what `w` has of it. 0 if they are not such. */
static int means_of(PyObject *with_padding, PyObject *divisor, Sliding *w)
{
    if (!PyBool_Check(with_padding) || !number_or(divisor, NAN, &w->divisor) ||
        w->divisor == 0 || w->dilation[0] != 1 || w->dilation[1] != 1 || w->dilation[2] != 1) {
        return 0;
    }
    w->with_padding = with_padding == Py_True;
    if (divisor != Py_None) {
        return 1;
    }
    double whole = 1;
    for (int d = 0; d < 3; d++) {
        if (counted(w, d, 0) != w->kernel[d] ||
            counted(w, d, w->out[d] - 1) != w->kernel[d]) {
            return 1; /* some windows have less than others */
        }
        whole *= (double)w->kernel[d];
    }
    w->divisor = whole;
    return 1;
}

/* Whether plugrad-cpu takes no longer: few additions for large arrays, of windows side by side or
   in short lines. */
static int is_simple(const Sliding *w, npy_intp size)
{
    npy_intp taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
    return size >= SHARED && taps <= 4 && !is_whole(w) && (w->stride[2] == 1 || w->out[2] < 16);
}

/* x, kernel, stride, padding, dilation, out, count_include_pad, divisor */
static PyObject *avg_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Sliding w;
    PyArrayObject *x = count == 8 ? served(args[0]) : NULL;
    int rank = x == NULL || PyArray_SIZE(x) == 0
                   ? 0
                   : sliding_over(PyArray_DIMS(x), PyArray_NDIM(x), args + 1, &w);
    if (rank == 0 || !means_of(args[6], args[7], &w) || is_simple(&w, PyArray_SIZE(x))) {
        return declined();
    }
    PyArrayObject *out = new_of_windows(x, rank, &w, PyArray_TYPE(x));
    if (out == NULL) {
        return NULL;
    }
    w.from = DATA(x);
    w.to = DATA(out);
    return pooled(&w, OF_TYPE(x, avg_pool), out, PyArray_SIZE(x) / w.area, SHARED);
}

/* grad, shape, kernel, stride, padding, dilation, out, count_include_pad, divisor */
static PyObject *avg_pool_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Sliding w;
    npy_intp shape[NPY_MAXDIMS];
    PyArrayObject *grad = count == 9 ? gradient_of_windows(args[0]) : NULL;
    if (grad == NULL) {
        return failed();
    }
    PyArrayObject *out = NULL;
    PyObject *found = NULL;
    if (sliding_backwards(grad, args[1], args + 2, shape, &w) &&
        means_of(args[7], args[8], &w) &&
        (out = new_array(PyArray_NDIM(grad), shape, PyArray_TYPE(grad))) != NULL) {
        w.from = DATA(grad);
        w.to = DATA(out);
        npy_intp planes = PyArray_SIZE(grad) / w.windows;
        found = pooled(&w, OF_TYPE(grad, avg_pool_backward), out, planes, SHARED);
    }
    Py_DECREF(grad);
    return found == NULL ? failed() : found;
}

#endif
