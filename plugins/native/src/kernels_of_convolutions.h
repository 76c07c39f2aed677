/* Convolution of planes with filters of 3 x 3, and its gradients. */

#ifndef PLUGRAD_KERNELS_OF_CONVOLUTIONS_H
#define PLUGRAD_KERNELS_OF_CONVOLUTIONS_H

#include "kernels_of_views.h"
#include "kernels_of_windows.h"
#include "winograd.h"
#include "winograd_gradient.h"

#if defined(__GNUC__)

/* Below it what is computed once for all tiles takes too long: so many, and half as many as there
   are channels and filters. In narrower images most of a vector of tiles is empty. */
#define LEAST_TILES 64
#define LEAST_WIDTH 8
/* With fewer channels, and more filters for each, most of it is what is done for each filter. */
#define FEW 3
#define MANY_FILTERS 8
/* Points of filters at most, which should stay in the cache. */
#define MOST_POINTS ((npy_intp)1 << 20)
/* Parts of the work for the gradient of filters, which have sums of their own. However many threads
   there are, these are the same. */
#define GROUPS 8
#define GROUP_POINTS ((npy_intp)1 << 22)
/* What a product takes, compared with an element of other work. */
#define PRODUCTS_OF_ELEMENT 64

/* A float32 array of four dimensions, or NULL without an error. */
static PyArrayObject *planes_from(PyObject *given)
{
    PyArrayObject *a = served(given);
    return a != NULL && PyArray_TYPE(a) == NPY_FLOAT && PyArray_NDIM(a) == 4 ? a : NULL;
}

/* Whether a tuple of two has this number twice. */
static int is_twice(PyObject *given, long number)
{
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 2) {
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        PyObject *one = PyTuple_GET_ITEM(given, i);
        if (!PyLong_Check(one) || whole_from(one) != number) {
            return 0;
        }
    }
    return 1;
}

/* The padding of both dimensions, 0 to 2. */
static int padding_from(PyObject *given, npy_intp *padding)
{
    if (sizes_from(given, padding) != 2) {
        return 0;
    }
    return padding[0] <= 2 && padding[1] <= 2;
}

/* A convolution of `image`, with filters of `weight` that are seen from the other side if it is
   turned; 0 if it is not served. */
static int tiled_from(PyArrayObject *image, PyArrayObject *weight, const npy_intp *padding,
                      int turned, npy_intp bytes, Tiled *w)
{
    if (PyArray_DIM(weight, 2) != 3 || PyArray_DIM(weight, 3) != 3 ||
        PyArray_DIM(image, 1) != PyArray_DIM(weight, !turned)) {
        return 0;
    }
    w->images = PyArray_DIM(image, 0);
    w->channels = PyArray_DIM(image, 1);
    w->filters = PyArray_DIM(weight, turned);
    w->height = PyArray_DIM(image, 2);
    w->width = PyArray_DIM(image, 3);
    w->above = turned ? 2 - padding[0] : padding[0];
    w->before = turned ? 2 - padding[1] : padding[1];
    w->out_height = w->height + 2 * w->above - 2;
    w->out_width = w->width + 2 * w->before - 2;
    w->filter_step = turned ? 9 : 9 * w->channels;
    w->channel_step = turned ? 9 * w->filters : 9;
    w->turned = turned;
    w->image = DATA(image);
    w->filter = DATA(weight);
    if (PyArray_SIZE(image) == 0 || w->filters == 0 || w->out_height < 1 ||
        w->out_width < LEAST_WIDTH ||
        (w->channels < FEW && w->filters > MANY_FILTERS * w->channels) ||
        w->filters > MOST_POINTS / POINTS / w->channels) {
        return 0;
    }
    plan_tiles(w, bytes);
    npy_intp least = LEAST_TILES + (w->channels + w->filters) / 2;
    return w->images * w->lines * w->tiles >= least;
}

/* How many threads share the work. */
static int threads_of(const Tiled *w)
{
    double products = (double)(w->images * w->lines * w->tiles) * POINTS *
                      (double)(w->channels * w->filters) / PRODUCTS_OF_ELEMENT;
    npy_intp size = products < (double)NPY_MAX_INT32 ? (npy_intp)products : NPY_MAX_INT32;
    return is_worth_sharing(size, SHARED) ? threads_for(size, 0) : 1;
}

/* The reference to `out` if the work has not failed; NULL with an error, or without one if the range
   of the numbers is wide or a result is inf or nan: those spread in a tile, to places that do not
   depend on them. */
static PyArrayObject *unless_failed(const Tiled *w, PyArrayObject *out)
{
    if (*w->failed != 0 || PyErr_Occurred()) {
        Py_CLEAR(out);
    }
    if (*w->failed == 1) {
        PyErr_NoMemory();
    }
    return out;
}

/* A new array of the convolution; NULL as above. */
static PyArrayObject *convolved(Tiled *w)
{
    if (are_filters_wide(w)) {
        return NULL;
    }
    int failed = 0, threads = threads_of(w);
    npy_intp shape[] = {w->images, w->filters, w->out_height, w->out_width};
    npy_intp blocks = blocks_of(w);
    w->failed = &failed;
    PyArrayObject *out = new_array(4, shape, NPY_FLOAT);
    w->points = PyMem_Malloc((size_t)(POINTS * w->filters * w->channels) * sizeof(float));
    if (out == NULL || w->points == NULL) {
        failed = 1;
    } else {
        w->out = DATA(out);
        Py_BEGIN_ALLOW_THREADS;
        share(transform_filters, w, w->panels, 1, threads);
        share(convolve, w, blocks, 1 + blocks / (4 * threads), threads);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(w->points);
    return unless_failed(w, out);
}

/* x, weight, bias, stride, padding, dilation, transposed, output_padding, groups */
static PyObject *convolution(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Tiled w = {0};
    npy_intp padding[NPY_MAXDIMS];
    PyArrayObject *x = count == 9 ? planes_from(args[0]) : NULL, *bias;
    PyArrayObject *weight = x != NULL ? planes_from(args[1]) : NULL;
    if (weight == NULL || !is_twice(args[3], 1) || !padding_from(args[4], padding) ||
        !is_twice(args[5], 1) || !is_twice(args[7], 0) || whole_from(args[8]) != 1 ||
        !tiled_from(x, weight, padding, args[6] == Py_True, BLOCK_BYTES, &w) ||
        !optional_flat(args[2], x, w.filters, &bias)) {
        return declined();
    }
    w.bias = bias == NULL ? NULL : DATA(bias);
    PyArrayObject *out = convolved(&w);
    return out == NULL ? failed() : (PyObject *)out;
}

/* The gradients of the filters, and of the bias if `*to_bias` is an array; NULL as above. */
static PyArrayObject *correlated(Tiled *w, PyArrayObject *weight, PyArrayObject *to_bias)
{
    int failed = 0, threads = threads_of(w);
    npy_intp points = POINTS * rounded(w->channels, FEW_CHANNELS) * rounded(w->filters, FEW_FILTERS);
    npy_intp most = GROUP_POINTS / points, blocks = blocks_of(w);
    w->groups = most < GROUPS ? most : GROUPS;
    w->groups = w->groups < blocks ? w->groups : blocks;
    w->failed = &failed;
    PyArrayObject *out = new_like(weight);
    w->sums = PyMem_Malloc((size_t)(w->groups * points) * sizeof(float));
    w->bias_sums = PyMem_Malloc((size_t)(w->groups * w->filters) * sizeof(double));
    if (out == NULL || w->sums == NULL || w->bias_sums == NULL) {
        failed = 1;
    } else {
        w->out = DATA(out);
        Py_BEGIN_ALLOW_THREADS;
        share(correlate, w, w->groups, 1, threads);
        if (!failed) {
            share(transform_sums, w, (w->filters + FEW_FILTERS - 1) / FEW_FILTERS, 1, threads);
        }
        Py_END_ALLOW_THREADS;
    }
    for (npy_intp o = 0; !failed && to_bias != NULL && o < w->filters; o++) {
        double sum = 0;
        for (npy_intp group = 0; group < w->groups; group++) {
            sum += w->bias_sums[group * w->filters + o];
        }
        ((float *)DATA(to_bias))[o] = (float)sum;
    }
    PyMem_Free(w->sums);
    PyMem_Free(w->bias_sums);
    return unless_failed(w, out);
}

/* grad, x, weight, stride, padding, dilation, transposed, groups, mask */
static PyObject *convolution_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Tiled to_input = {0}, to_weight = {0};
    npy_intp padding[NPY_MAXDIMS];
    PyArrayObject *x = count == 9 ? planes_from(args[1]) : NULL;
    PyArrayObject *weight = x != NULL ? planes_from(args[2]) : NULL;
    if (weight == NULL || !is_twice(args[3], 1) || !padding_from(args[4], padding) ||
        !is_twice(args[5], 1) || args[6] != Py_False || whole_from(args[7]) != 1 ||
        !PyTuple_Check(args[8]) || PyTuple_GET_SIZE(args[8]) != 3 ||
        !tiled_from(x, weight, padding, 0, LONG_BLOCK_BYTES, &to_weight)) {
        return declined();
    }
    PyArrayObject *grad = gradient_of_windows(args[0]);
    if (grad == NULL) {
        return failed();
    }
    PyObject *parts[] = {NULL, NULL, NULL};
    int wanted[3];
    for (int i = 0; i < 3; i++) {
        wanted[i] = PyTuple_GET_ITEM(args[8], i) == Py_True;
    }
    int done = planes_from((PyObject *)grad) != NULL &&
               PyArray_DIM(grad, 0) == to_weight.images &&
               PyArray_DIM(grad, 1) == to_weight.filters &&
               PyArray_DIM(grad, 2) == to_weight.out_height &&
               PyArray_DIM(grad, 3) == to_weight.out_width &&
               (!wanted[0] || tiled_from(grad, weight, padding, 1, BLOCK_BYTES, &to_input));
    if (done && wanted[0]) {
        parts[0] = (PyObject *)convolved(&to_input);
        done = parts[0] != NULL;
    }
    if (done && wanted[2]) {
        parts[2] = (PyObject *)new_array(1, &to_weight.filters, NPY_FLOAT);
        done = parts[2] != NULL;
    }
    if (done && (wanted[1] || wanted[2])) {
        to_weight.grad = DATA(grad);
        parts[1] = (PyObject *)correlated(&to_weight, weight, (PyArrayObject *)parts[2]);
        done = parts[1] != NULL;
    }
    Py_DECREF(grad);
    for (int i = 0; i < 3; i++) {
        if (!done || !wanted[i]) {
            Py_XSETREF(parts[i], done ? Py_NewRef(Py_None) : NULL);
        }
    }
    return done ? results(3, parts) : failed();
}

#else

static PyObject *convolution(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return declined();
}

static PyObject *convolution_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return declined();
}

#endif
#endif
