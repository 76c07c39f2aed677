/* Sums over dimensions. */

#ifndef PLUGRAD_KERNELS_OF_SUMS_H
#define PLUGRAD_KERNELS_OF_SUMS_H

#include "kinds.h"

/* A sum over rows or columns of an array of `rows` rows of `n` elements, divided by something. */
typedef struct {
    PyArrayObject *a, *out;
    npy_intp rows, n;
    double divisor;
} Sums;

static void do_sum_rows(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Sums *work = given;
    PyArrayObject *a = work->a;
    OF_TYPE(a, sum_rows)
    (at(DATA(a), a, from * work->n), at(DATA(work->out), a, from), to - from, work->n,
     work->divisor);
}

static void do_sum_columns(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Sums *work = given;
    OF_TYPE(work->a, sum_columns)
    (DATA(work->a), NULL, DATA(work->out), work->rows, work->n, from, to, work->divisor);
}

/* How many columns make a part: whole cache lines, and at least two parts of more than a few. */
static npy_intp columns_of_part(npy_intp n)
{
    return n > 2 * WIDE ? WIDE : (n + 31) / 32 * 16;
}

/* Sums of some of the rows, in `parts`. */
typedef struct {
    const Sums *sums;
    void *parts;
} Columns;

static void do_parts_of_columns(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Columns *work = given;
    const Sums *sums = work->sums;
    OF_TYPE(sums->a, sum_parts_of_columns)
    (DATA(sums->a), work->parts, sums->rows, sums->n, from, to);
}

/* Threads share rows, which lie together in memory, or columns where there are few rows. The sums of
   each ROWS rows are added up in the same order for any number of threads. */
static void sum_columns(const Sums *work)
{
    npy_intp rows = work->rows, n = work->n, size = rows * n, parts = (rows + ROWS - 1) / ROWS;
    int threads = is_worth_sharing(size, LIGHT_SHARED) ? threads_for(size, 0) : 1;
    Columns shared = {work, NULL};
    if (threads > 1 && parts >= 4 * threads) {
        shared.parts = PyMem_Malloc((size_t)(parts * n * PyArray_ITEMSIZE(work->a)));
    }
    if (shared.parts == NULL) {
        RELEASING_LOCK(size, share(do_sum_columns, work, n, columns_of_part(n), threads));
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    share(do_parts_of_columns, &shared, parts, 1, threads);
    OF_TYPE(work->a, sum_columns)
    (NULL, shared.parts, DATA(work->out), rows, n, 0, n, work->divisor);
    Py_END_ALLOW_THREADS;
    PyMem_Free(shared.parts);
}

/* Elements that are many, and rows that plugrad-cpu does not give to BLAS. */
#define MANY (1 << 16)
#define SHORT 32

/* The sum of many elements, from sums of parts: those are the same for any number of threads. */
typedef struct {
    PyArrayObject *a;
    double *sums;
} Parts;

static void do_parts_of_sum(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Parts *work = given;
    npy_intp n = PyArray_SIZE(work->a);
    for (Py_ssize_t part = from; part < to; part++) {
        npy_intp first = part * PART, size = n - first < PART ? n - first : PART;
        work->sums[part] = OF_TYPE(work->a, sum)(at(DATA(work->a), work->a, first), size);
    }
}

static void add_in_parts(const Sums *sums)
{
    npy_intp parts = (sums->n + PART - 1) / PART;
    double *found = PyMem_Malloc((size_t)parts * sizeof(double));
    if (found == NULL) {
        RELEASING_LOCK(sums->n, do_sum_rows(sums, 0, 1));
        return;
    }
    Parts work = {sums->a, found};
    SHARING(sums->n, LIGHT_SHARED, do_parts_of_sum, &work, parts, 1);
    double total = sum_double(found, parts) / sums->divisor;
    if (PyArray_TYPE(sums->out) == NPY_FLOAT) {
        *(float *)DATA(sums->out) = (float)total;
    } else {
        *(double *)DATA(sums->out) = total;
    }
    PyMem_Free(found);
}

/* Sums over the first or the last dimensions: a, dims, keepdim, dtype. */
static PyObject *add_up(PyObject *const *args, Py_ssize_t count, int divide)
{
    PyArrayObject *a = count == 4 ? served(args[0]) : NULL;
    if (a == NULL || PyArray_SIZE(a) == 0 || !PyTuple_Check(args[1]) ||
        !is_dtype_of(args[3], a)) {
        return declined();
    }
    int ndim = PyArray_NDIM(a), reduced = (int)PyTuple_GET_SIZE(args[1]);
    if (reduced > ndim || (reduced == 0 && ndim > 0)) {
        return declined();
    }
    npy_bool chosen[NPY_MAXDIMS] = {0};
    for (int i = 0; i < reduced; i++) {
        PyObject *given = PyTuple_GET_ITEM(args[1], i);
        int dim = dimension_of(given, ndim);
        if (dim < 0 || chosen[dim]) {
            return declined();
        }
        chosen[dim] = 1;
    }
    /* Where the dimensions begin that are added up, or end if these are the first ones. */
    int from_front = reduced < ndim && chosen[0];
    int border = from_front ? reduced : ndim - reduced;
    npy_intp shape[NPY_MAXDIMS];
    int kept = 0;
    for (int d = 0; d < ndim; d++) {
        if (chosen[d] != (from_front ? d < border : d >= border)) {
            return declined();
        }
        if (!chosen[d] || args[2] == Py_True) {
            shape[kept++] = chosen[d] ? 1 : PyArray_DIM(a, d);
        }
    }
    npy_intp rows = product(a, 0, border), n = product(a, border, ndim);
    if (!from_front && rows * n >= MANY && n >= SHORT && n < BLOCK / 2) {
        return declined(); /* plugrad-cpu has BLAS add up many short rows, which is faster */
    }
    PyArrayObject *out = new_array(kept, shape, PyArray_TYPE(a));
    if (out == NULL) {
        return NULL;
    }
    double divisor = !divide ? 1.0 : from_front ? (double)rows : (double)n;
    Sums work = {a, out, rows, n, divisor};
    if (from_front) {
        sum_columns(&work);
    } else if (rows == 1 && n >= 2 * PART) {
        add_in_parts(&work);
    } else {
        SHARING(rows * n, LIGHT_SHARED, do_sum_rows, &work, rows, rows_of_part(n));
    }
    return (PyObject *)out;
}

static PyObject *sum(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return add_up(args, count, 0);
}

static PyObject *mean(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return add_up(args, count, 1);
}

#endif
