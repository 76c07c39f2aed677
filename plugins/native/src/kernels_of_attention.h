/* Attention without dropout and its gradients: heads that threads share. */

#ifndef PLUGRAD_KERNELS_OF_ATTENTION_H
#define PLUGRAD_KERNELS_OF_ATTENTION_H

#include "kinds.h"

typedef void (*HeadLoop)(const Attention *, const Head *, void *);

/* All heads: where each argument is, and the steps along the leading dimensions, in bytes. */
typedef struct {
    Attention of;
    HeadLoop loop;
    int leading, itemsize;
    npy_intp sizes[NPY_MAXDIMS], mask_steps[NPY_MAXDIMS];
    PyArrayObject *query, *key, *value, *mask, *grad, *out, *sums;
    PyArrayObject *to_query, *to_key, *to_value;
    size_t memory;
    int *no_memory;
} Heads;

/* Whether an array is (*leading, rows, columns) with rows of elements that follow each other. */
static int is_heads(PyObject *given, const Heads *heads, PyArrayObject *like, npy_intp rows,
                    npy_intp columns, PyArrayObject **found, Steps *steps)
{
    PyArrayObject *a = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || PyArray_TYPE(a) != PyArray_TYPE(like) ||
        PyArray_NDIM(a) != heads->leading + 2 || !PyArray_ISALIGNED(a) ||
        !PyArray_ISNOTSWAPPED(a)) {
        return 0;
    }
    for (int d = 0; d < heads->leading; d++) {
        if (PyArray_DIM(a, d) != heads->sizes[d]) {
            return 0;
        }
    }
    int last = heads->leading + 1;
    if (PyArray_DIM(a, last) != columns || PyArray_DIM(a, last - 1) != rows ||
        (columns > 1 && PyArray_STRIDE(a, last) != heads->itemsize) ||
        PyArray_STRIDE(a, last - 1) % heads->itemsize != 0) {
        return 0;
    }
    *found = a;
    steps->row = PyArray_STRIDE(a, last - 1) / heads->itemsize;
    return 1;
}

/* A mask that broadcasts to (*leading, rows, columns): booleans, or numbers of the same dtype. */
static int is_mask(PyObject *given, Heads *heads)
{
    heads->mask = NULL;
    if (given == Py_None) {
        return 1;
    }
    PyArrayObject *a = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a) ||
        PyArray_NDIM(a) > heads->leading + 2 || PyArray_NDIM(a) < 2 ||
        (PyArray_TYPE(a) != NPY_BOOL && PyArray_TYPE(a) != PyArray_TYPE(heads->query))) {
        return 0;
    }
    int missing = heads->leading + 2 - PyArray_NDIM(a);
    npy_intp last[2] = {heads->of.rows, heads->of.columns};
    for (int d = 0; d < heads->leading + 2; d++) {
        npy_intp wanted = d < heads->leading ? heads->sizes[d] : last[d - heads->leading];
        npy_intp size = d < missing ? 1 : PyArray_DIM(a, d - missing);
        if (size != wanted && size != 1) {
            return 0;
        }
        heads->mask_steps[d] = size == 1 ? 0 : PyArray_STRIDE(a, d - missing);
    }
    heads->mask = a;
    heads->of.hides = PyArray_TYPE(a) == NPY_BOOL;
    heads->of.mask_row = heads->mask_steps[heads->leading];
    heads->of.mask_column = heads->mask_steps[heads->leading + 1];
    return 1;
}

/* Elements in whole lines of the cache; in an odd number of them if asked: rows that are a power of
   two apart share few places there. */
static npy_intp lines_of(npy_intp elements, int itemsize, int odd)
{
    npy_intp line = 64 / itemsize;
    return ((elements + line - 1) / line | odd) * line;
}

/* query, key, value, mask, and by themselves causal and scale; 0 if they are not served. */
static int heads_from(PyObject *const *args, PyObject *causal, PyObject *scale, Heads *heads)
{
    PyArrayObject *query = (PyArrayObject *)args[0];
    if (!PyArray_CheckExact(args[0]) || !is_real(query) || PyArray_NDIM(query) < 2 ||
        !PyArray_CheckExact(args[1]) || PyArray_NDIM((PyArrayObject *)args[1]) < 2 ||
        !PyArray_CheckExact(args[2]) || PyArray_NDIM((PyArrayObject *)args[2]) < 2 ||
        !PyBool_Check(causal) || !PyFloat_Check(scale)) {
        return 0;
    }
    PyArrayObject *key = (PyArrayObject *)args[1], *value = (PyArrayObject *)args[2];
    Attention *of = &heads->of;
    heads->leading = PyArray_NDIM(query) - 2;
    heads->itemsize = (int)PyArray_ITEMSIZE(query);
    memcpy(heads->sizes, PyArray_DIMS(query), (size_t)heads->leading * sizeof(npy_intp));
    of->rows = PyArray_DIM(query, heads->leading);
    of->width = PyArray_DIM(query, heads->leading + 1);
    of->columns = PyArray_DIM(key, PyArray_NDIM(key) - 2);
    of->value_width = PyArray_DIM(value, PyArray_NDIM(value) - 1);
    of->causal = causal == Py_True;
    of->scale = PyFloat_AsDouble(scale);
    if (PyArray_SIZE(query) == 0 || of->columns == 0 || of->value_width == 0 ||
        !is_heads(args[0], heads, query, of->rows, of->width, &heads->query, &of->query) ||
        !is_heads(args[1], heads, query, of->columns, of->width, &heads->key, &of->key) ||
        !is_heads(args[2], heads, query, of->columns, of->value_width, &heads->value,
                  &of->value) ||
        !is_mask(args[3], heads)) {
        return 0;
    }
    of->wide = lines_of(of->columns, heads->itemsize, 1);
    of->query_wide = lines_of(of->width, heads->itemsize, 0);
    of->value_wide = lines_of(of->value_width, heads->itemsize, 0);
    npy_intp block = WEIGHTS / of->wide;
    of->block = block > MOST_ROWS ? MOST_ROWS : block < TALL ? TALL : block / TALL * TALL;
    return 1;
}

/* Where one of the heads begins. */
static char *head_of(PyArrayObject *a, const npy_intp *index, int leading)
{
    char *data = DATA(a);
    for (int d = 0; d < leading; d++) {
        data += index[d] * PyArray_STRIDE(a, d);
    }
    return data;
}

static void do_heads(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Heads *heads = given;
    void *memory = PyMem_RawMalloc(heads->memory);
    if (memory == NULL) {
        *heads->no_memory = 1;
        return;
    }
    for (Py_ssize_t number = from; number < to; number++) {
        npy_intp index[NPY_MAXDIMS], rest = number;
        Head head = {0};
        for (int d = heads->leading - 1; d >= 0; d--) {
            index[d] = rest % heads->sizes[d];
            rest /= heads->sizes[d];
        }
#define OF_HEAD(name)                                                                              \
    if (heads->name != NULL) {                                                                     \
        head.name = head_of(heads->name, index, heads->leading);                                   \
    }
        OF_HEAD(query)
        OF_HEAD(key)
        OF_HEAD(value)
        OF_HEAD(grad)
        OF_HEAD(out)
        OF_HEAD(sums)
        OF_HEAD(to_query)
        OF_HEAD(to_key)
        OF_HEAD(to_value)
#undef OF_HEAD
        if (heads->mask != NULL) {
            const char *mask = DATA(heads->mask);
            for (int d = 0; d < heads->leading; d++) {
                mask += index[d] * heads->mask_steps[d];
            }
            head.mask = mask;
        }
        heads->loop(&heads->of, &head, memory);
    }
    PyMem_RawFree(memory);
}

/* Whether there was memory for it. */
static int run_heads(Heads *heads, npy_intp elements)
{
    npy_intp count = product(heads->query, 0, heads->leading);
    npy_intp size = count * heads->of.rows * heads->of.columns;
    int no_memory = 0;
    heads->no_memory = &no_memory;
    heads->memory = (size_t)elements * (size_t)heads->itemsize;
    SHARING(size, SHARED, do_heads, heads, count, 1);
    if (no_memory) {
        PyErr_NoMemory();
    }
    return !no_memory;
}

/* query, key, value, mask, causal, scale */
static PyObject *attention(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Heads heads = {0};
    if (count != 6 || !heads_from(args, args[4], args[5], &heads)) {
        return declined();
    }
    Attention *of = &heads.of;
    int leading = heads.leading, type = PyArray_TYPE(heads.query);
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS(heads.query), (size_t)(leading + 1) * sizeof(npy_intp));
    shape[leading + 1] = of->value_width;
    heads.out = new_array(leading + 2, shape, type);
    heads.sums = new_array(leading + 1, shape, type);
    heads.loop = OF_TYPE(heads.query, attention);
    npy_intp elements = (of->width + of->block) * of->wide + of->columns * of->value_wide;
    if (heads.out != NULL && heads.sums != NULL && !run_heads(&heads, elements)) {
        Py_CLEAR(heads.out);
    }
    PyObject *parts[] = {(PyObject *)heads.out, (PyObject *)heads.sums};
    return results(2, parts);
}

static PyArrayObject *zeros_if(PyObject *wanted, PyArrayObject *like)
{
    return wanted == Py_True
               ? new_zeros(PyArray_NDIM(like), PyArray_DIMS(like), PyArray_TYPE(like))
               : NULL;
}

/* grad, query, key, value, mask, out, logsumexp, causal, scale, wanted */
static PyObject *attention_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Heads heads = {0};
    if (count != 10 || !PyTuple_Check(args[9]) || PyTuple_GET_SIZE(args[9]) != 4 ||
        PyTuple_GET_ITEM(args[9], 3) == Py_True ||
        !heads_from(args + 1, args[7], args[8], &heads)) {
        return declined();
    }
    Attention *of = &heads.of;
    heads.sums = served_like(args[6], heads.query);
    if (!is_heads(args[5], &heads, heads.query, of->rows, of->value_width, &heads.out,
                  &of->result) ||
        heads.sums == NULL || PyArray_SIZE(heads.sums) * of->width != PyArray_SIZE(heads.query) ||
        PyArray_NDIM(heads.sums) != heads.leading + 1) {
        return declined();
    }
    PyArrayObject *grad = NULL;
    if (is_heads(args[0], &heads, heads.query, of->rows, of->value_width, &heads.grad,
                 &of->grad)) {
        grad = (PyArrayObject *)Py_NewRef(heads.grad);
    } else {
        grad = gradient_like(args[0], heads.out);
        if (grad == NULL) {
            return failed();
        }
        heads.grad = grad;
        of->grad.row = of->value_width;
    }
    PyObject *wanted = args[9];
    heads.to_query = zeros_if(PyTuple_GET_ITEM(wanted, 0), heads.query);
    heads.to_key = zeros_if(PyTuple_GET_ITEM(wanted, 1), heads.key);
    heads.to_value = zeros_if(PyTuple_GET_ITEM(wanted, 2), heads.value);
    heads.loop = OF_TYPE(heads.query, attention_backward);
    npy_intp elements = (of->width + of->value_width + 2 * of->block) * of->wide;
    elements += (of->columns + of->block) * of->query_wide + of->block * of->value_wide;
    int done = !PyErr_Occurred() && run_heads(&heads, elements);
    Py_DECREF(grad);
    PyObject *parts[4] = {(PyObject *)heads.to_query, (PyObject *)heads.to_key,
                          (PyObject *)heads.to_value, NULL};
    for (int i = 0; i < 4; i++) {
        parts[i] = parts[i] == NULL && done ? Py_NewRef(Py_None) : parts[i];
        if (!done) {
            Py_CLEAR(parts[i]);
        }
    }
    return done ? results(4, parts) : NULL;
}

#endif
