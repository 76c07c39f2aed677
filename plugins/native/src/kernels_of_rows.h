/* Kernels along the last dimensions: softmax, layer_norm, the largest element, nll_loss. */

#ifndef PLUGRAD_KERNELS_OF_ROWS_H
#define PLUGRAD_KERNELS_OF_ROWS_H

#include "kernels_of_sums.h"
#include "kinds.h"

typedef void (*RowLoop)(const void *, void *, npy_intp, npy_intp);
typedef void (*RowGradientLoop)(const void *, const void *, void *, npy_intp, npy_intp);

/* A loop over rows of `n` elements, with what it reads and writes. */
typedef struct {
    RowLoop loop;
    RowGradientLoop gradient_loop;
    PyArrayObject *grad, *a, *out;
    npy_intp n;
} Rows;

static void do_rows(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Rows *work = given;
    npy_intp n = work->n, first = from * n;
    const void *a = at(DATA(work->a), work->a, first);
    void *out = at(DATA(work->out), work->a, first);
    if (work->grad == NULL) {
        work->loop(a, out, to - from, n);
    } else {
        work->gradient_loop(at(DATA(work->grad), work->a, first), a, out, to - from, n);
    }
}

/* a, dim, something that the caller looked at */
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
    Rows work = {
        .loop = PyArray_TYPE(a) == NPY_FLOAT ? of_float : of_double, .a = a, .out = out, .n = n};
    SHARING(rows * n, SHARED, do_rows, &work, rows, rows_of_part(n));
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
        Rows work = {.gradient_loop = PyArray_TYPE(result) == NPY_FLOAT ? of_float : of_double,
                     .grad = grad,
                     .a = result,
                     .out = out,
                     .n = n};
        SHARING(rows * n, SHARED, do_rows, &work, rows, rows_of_part(n));
    }
    Py_DECREF(grad);
    return (PyObject *)out;
}

/* a, dim, dtype of the result */
static PyObject *cumsum(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 3 ? served(args[0]) : NULL;
    if (a == NULL || !is_dtype_of(args[2], a)) {
        return declined();
    }
    return along_rows(args, count, cumsum_float, cumsum_double);
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

/* What the loops of layer_norm read and write; `made` is what `part` of its gradient is for. The
   means are NULL for rms_norm. */
typedef struct {
    PyArrayObject *x, *grad, *mean, *rstd, *made;
    const void *weights, *biases;
    npy_intp rows, n;
    double eps;
} LayerNorm;

static void *of_rows(PyArrayObject *means, npy_intp first)
{
    return means == NULL ? NULL : at(DATA(means), means, first);
}

static void do_layer_norm(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const LayerNorm *work = given;
    PyArrayObject *x = work->x;
    npy_intp n = work->n, first = from * n;
    OF_TYPE(x, layer_norm)
    (at(DATA(x), x, first), work->weights, work->biases, at(DATA(work->made), x, first),
     of_rows(work->mean, from), at(DATA(work->rstd), x, from), to - from, n, work->eps);
}

static void do_layer_norm_to_input(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const LayerNorm *work = given;
    PyArrayObject *x = work->x;
    npy_intp n = work->n, first = from * n;
    OF_TYPE(x, layer_norm_to_input)
    (at(DATA(work->grad), x, first), at(DATA(x), x, first), of_rows(work->mean, from),
     at(DATA(work->rstd), x, from), work->weights, at(DATA(work->made), x, first), to - from, n);
}

static void do_layer_norm_to_weight(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const LayerNorm *work = given;
    OF_TYPE(work->x, layer_norm_to_weight)
    (DATA(work->grad), DATA(work->x), of_rows(work->mean, 0), DATA(work->rstd), DATA(work->made),
     work->rows, work->n, from, to);
}

/* The input, the shape, weight and bias; `centered` tells layer_norm from rms_norm. */
static PyObject *normalized(PyObject *const *args, PyObject *bias_given, PyObject *eps,
                            int centered)
{
    PyArrayObject *weight, *bias, *x = served(args[0]);
    int last = x == NULL ? 0 : normalized_dims(args[1], x);
    if (last == 0 || PyArray_SIZE(x) == 0 || !PyFloat_Check(eps)) {
        return declined();
    }
    int ndim = PyArray_NDIM(x);
    npy_intp n = product(x, ndim - last, ndim), rows = PyArray_SIZE(x) / n;
    if (!optional_flat(args[2], x, n, &weight) || !optional_flat(bias_given, x, n, &bias)) {
        return declined();
    }
    npy_intp kept[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++) {
        kept[d] = d < ndim - last ? PyArray_DIM(x, d) : 1;
    }
    PyArrayObject *out = new_like(x);
    PyArrayObject *mean = centered ? new_array(ndim, kept, PyArray_TYPE(x)) : NULL;
    PyArrayObject *rstd = new_array(ndim, kept, PyArray_TYPE(x));
    if (out != NULL && rstd != NULL && (mean != NULL || !centered)) {
        LayerNorm work = {.x = x,
                          .mean = mean,
                          .rstd = rstd,
                          .made = out,
                          .weights = weight == NULL ? NULL : DATA(weight),
                          .biases = bias == NULL ? NULL : DATA(bias),
                          .rows = rows,
                          .n = n,
                          .eps = PyFloat_AS_DOUBLE(eps)};
        SHARING(rows * n, SHARED, do_layer_norm, &work, rows, rows_of_part(n));
    }
    PyObject *parts[] = {(PyObject *)out, (PyObject *)rstd, (PyObject *)mean};
    if (centered) {
        parts[1] = (PyObject *)mean;
        parts[2] = (PyObject *)rstd;
    }
    return results(centered ? 3 : 2, parts);
}

/* x, shape, weight, bias, eps */
static PyObject *layer_norm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count == 5 ? normalized(args, args[3], args[4], 1) : declined();
}

/* x, shape, weight, eps */
static PyObject *rms_norm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count == 4 ? normalized(args, Py_None, args[3], 0) : declined();
}

/* The gradient, the input and the shape; a mask of `count` gradients that are wanted. Means are
   NULL for rms_norm. */
static PyObject *normalized_backward(PyObject *const *args, PyObject *means, PyObject *rstds,
                                     PyObject *weights, PyObject *mask, int count)
{
    PyArrayObject *mean = NULL, *rstd, *weight, *x = served(args[1]);
    int last = x == NULL ? 0 : normalized_dims(args[2], x);
    if (last == 0 || PyArray_SIZE(x) == 0 || !(PyTuple_Check(mask) || PyList_Check(mask)) ||
        PySequence_Fast_GET_SIZE(mask) != count) {
        return declined();
    }
    int ndim = PyArray_NDIM(x);
    npy_intp n = product(x, ndim - last, ndim), rows = PyArray_SIZE(x) / n;
    if ((means != NULL && (!optional_flat(means, x, rows, &mean) || mean == NULL)) ||
        !optional_flat(rstds, x, rows, &rstd) || rstd == NULL ||
        !optional_flat(weights, x, n, &weight)) {
        return declined();
    }
    PyArrayObject *grad = gradient_like(args[0], x);
    if (grad == NULL) {
        return failed();
    }
    PyObject *parts[3];
    for (int part = 0; part < count; part++) {
        if (PySequence_Fast_GET_ITEM(mask, part) != Py_True) {
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
        LayerNorm work = {.x = x,
                          .grad = grad,
                          .mean = mean,
                          .rstd = rstd,
                          .made = out,
                          .weights = weight == NULL ? NULL : DATA(weight),
                          .rows = rows,
                          .n = n};
        if (part == 0) {
            SHARING(rows * n, SHARED, do_layer_norm_to_input, &work, rows, rows_of_part(n));
        } else if (part == 1) {
            SHARING(rows * n, LIGHT_SHARED, do_layer_norm_to_weight, &work, n,
                    columns_of_part(n));
        } else {
            Sums sums = {grad, out, rows, n, 1.0};
            sum_columns(&sums);
        }
    }
    Py_DECREF(grad);
    return results(count, parts);
}

/* grad, x, shape, mean, rstd, weight, bias, mask of the gradients that are wanted */
static PyObject *layer_norm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count == 8 ? normalized_backward(args, args[3], args[4], args[5], args[7], 3)
                      : declined();
}

/* grad, x, shape, rstd, weight, mask of the gradients that are wanted */
static PyObject *rms_norm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count == 6 ? normalized_backward(args, NULL, args[3], args[4], args[5], 2)
                      : declined();
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
