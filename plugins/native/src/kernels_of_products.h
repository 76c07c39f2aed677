/* Products of small matrices, which take less time than to call BLAS. */

#ifndef PLUGRAD_KERNELS_OF_PRODUCTS_H
#define PLUGRAD_KERNELS_OF_PRODUCTS_H

#include "kernels_of_sums.h"
#include "kernels_of_views.h"

/* Products of numbers up to which a call is served: beyond, BLAS is faster. */
#define FEW_PRODUCTS (1 << 14)

/* A matrix, or several of one size: where elements are, counted in elements. */
typedef struct {
    PyArrayObject *array;
    npy_intp count, rows, columns;
    npy_intp next, row_step, column_step;
} Matrix;

/* Whether an array of two dimensions, or with `several` of three, can be read. */
static int is_matrix(PyObject *given, PyArrayObject *like, int several, Matrix *found)
{
    PyArrayObject *a = (PyArrayObject *)given;
    int first = several ? 1 : 0;
    if (!PyArray_CheckExact(given) || !is_real(a) || PyArray_NDIM(a) != 2 + first ||
        !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a) ||
        (like != NULL && PyArray_TYPE(a) != PyArray_TYPE(like))) {
        return 0;
    }
    npy_intp size = PyArray_ITEMSIZE(a);
    *found = (Matrix){a,
                      several ? PyArray_DIM(a, 0) : 1,
                      PyArray_DIM(a, first),
                      PyArray_DIM(a, first + 1),
                      several ? PyArray_STRIDE(a, 0) / size : 0,
                      PyArray_STRIDE(a, first) / size,
                      PyArray_STRIDE(a, first + 1) / size};
    return PyArray_STRIDE(a, first) % size == 0 && PyArray_STRIDE(a, first + 1) % size == 0 &&
           (!several || PyArray_STRIDE(a, 0) % size == 0);
}

/* All dimensions but the last one of an array as the rows of a matrix. */
static int is_rows(PyObject *given, PyArrayObject *like, Matrix *found)
{
    if (is_matrix(given, like, 0, found)) {
        return 1;
    }
    PyArrayObject *a = like == NULL ? served(given) : served_like(given, like);
    int ndim = a == NULL ? 0 : PyArray_NDIM(a);
    if (ndim == 0 || ndim == 2) {
        return 0;
    }
    npy_intp columns = PyArray_DIM(a, ndim - 1);
    *found = (Matrix){a, 1, product(a, 0, ndim - 1), columns, 0, columns, 1};
    return 1;
}

static Matrix turned(Matrix a)
{
    npy_intp rows = a.rows, step = a.row_step;
    a.rows = a.columns;
    a.row_step = a.column_step;
    a.columns = rows;
    a.column_step = step;
    return a;
}

/* Whether b can follow a in a product that is small enough. */
static int can_multiply(const Matrix *a, const Matrix *b)
{
    return a->columns == b->rows && a->count == b->count && a->columns > 0 &&
           a->columns <= FEW_PRODUCTS && b->columns <= PACKED &&
           a->columns * (b->columns + 15) <= PACKED && a->rows <= FEW_PRODUCTS &&
           a->rows * a->columns * b->columns <= FEW_PRODUCTS;
}

/* beta * c + alpha * a @ b; c may be NULL. */
static void multiply_into(const Matrix *a, const Matrix *b, const Matrix *c, double beta,
                          double alpha, PyArrayObject *out)
{
    for (npy_intp i = 0; i < a->count; i++) {
        Product work = {at(DATA(a->array), a->array, i * a->next),
                        at(DATA(b->array), b->array, i * b->next),
                        c == NULL ? NULL : DATA(c->array),
                        at(DATA(out), out, i * a->rows * b->columns),
                        a->rows,
                        a->columns,
                        b->columns,
                        a->row_step,
                        a->column_step,
                        b->row_step,
                        b->column_step,
                        c == NULL ? 0 : c->row_step,
                        c == NULL ? 0 : c->column_step,
                        alpha,
                        beta};
        OF_TYPE(out, multiply)(&work);
    }
}

static PyObject *product_of_matrices(PyObject *const *args, Py_ssize_t count, int several, int turn)
{
    Matrix a, b;
    if (count != 2 || !is_matrix(args[0], NULL, several, &a) ||
        !is_matrix(args[1], a.array, several, &b)) {
        return declined();
    }
    a = turn < 0 ? turned(a) : a;
    b = turn > 0 ? turned(b) : b;
    if (!can_multiply(&a, &b)) {
        return declined();
    }
    npy_intp shape[3] = {a.count, a.rows, b.columns};
    PyArrayObject *out =
        new_array(several ? 3 : 2, several ? shape : shape + 1, PyArray_TYPE(a.array));
    if (out != NULL) {
        multiply_into(&a, &b, NULL, 0, 1, out);
    }
    return (PyObject *)out;
}

/* a, b */
static PyObject *mm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return product_of_matrices(args, count, 0, 0);
}

static PyObject *bmm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return product_of_matrices(args, count, 1, 0);
}

static int are_batches(PyObject *const *args, Py_ssize_t count)
{
    return count > 0 && PyArray_CheckExact(args[0]) && PyArray_NDIM((PyArrayObject *)args[0]) == 3;
}

static PyObject *matmul_nh(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return product_of_matrices(args, count, are_batches(args, count), 1);
}

static PyObject *matmul_hn(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return product_of_matrices(args, count, are_batches(args, count), -1);
}

/* c, a, b, beta, alpha */
static PyObject *addmm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Matrix a, b, c;
    double beta, alpha;
    if (count != 5 || !is_matrix(args[1], NULL, 0, &a) || !is_matrix(args[2], a.array, 0, &b) ||
        !can_multiply(&a, &b) || args[3] == Py_None || !number_or(args[3], 1, &beta) ||
        args[4] == Py_None || !number_or(args[4], 1, &alpha) || !PyArray_CheckExact(args[0])) {
        return declined();
    }
    PyArrayObject *added = (PyArrayObject *)args[0];
    if (PyArray_NDIM(added) == 2 ? !is_matrix(args[0], a.array, 0, &c)
                                 : PyArray_NDIM(added) != 1 || !is_rows(args[0], a.array, &c)) {
        return declined();
    }
    if ((c.rows != 1 && c.rows != a.rows) || (c.columns != 1 && c.columns != b.columns)) {
        return declined();
    }
    c.row_step = c.rows == 1 ? 0 : c.row_step;
    c.column_step = c.columns == 1 ? 0 : c.column_step;
    npy_intp shape[2] = {a.rows, b.columns};
    PyArrayObject *out = new_array(2, shape, PyArray_TYPE(a.array));
    if (out != NULL) {
        multiply_into(&a, &b, &c, beta, alpha, out);
    }
    return (PyObject *)out;
}

/* All dimensions of a contiguous array but the last one as one; a new reference. */
static PyObject *as_matrix(PyArrayObject *a)
{
    if (PyArray_NDIM(a) == 2) {
        return Py_NewRef(a);
    }
    npy_intp columns = PyArray_DIM(a, PyArray_NDIM(a) - 1);
    Layout made = {.ndim = 2,
                   .shape = {PyArray_SIZE(a) / columns, columns},
                   .strides = {columns * PyArray_ITEMSIZE(a), PyArray_ITEMSIZE(a)}};
    return view_of(a, &made, 0);
}

/* a @ b by BLAS. References to the factors are taken over, which may be NULL. */
static PyObject *product_by_blas(PyObject *a, PyObject *b)
{
    PyObject *found = a == NULL || b == NULL ? NULL : PyArray_MatrixProduct2(a, b, NULL);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return found;
}

/* A matrix with all dimensions of `like` but the last one in front. It is taken over, and may be
   NULL. */
static PyObject *with_front_of(PyArrayObject *like, PyObject *matrix)
{
    if (matrix == NULL || PyArray_NDIM(like) == 2) {
        return matrix;
    }
    npy_intp shape[NPY_MAXDIMS];
    int ndim = PyArray_NDIM(like);
    memcpy(shape, PyArray_DIMS(like), (size_t)ndim * sizeof(npy_intp));
    shape[ndim - 1] = PyArray_DIM((PyArrayObject *)matrix, 1);
    PyArray_Dims sizes = {shape, ndim};
    PyObject *shaped = PyArray_Newshape((PyArrayObject *)matrix, &sizes, NPY_CORDER);
    Py_DECREF(matrix);
    return shaped;
}

typedef struct {
    PyArrayObject *out, *row;
} RowAdded;

static void do_add_row(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const RowAdded *work = given;
    npy_intp n = PyArray_SIZE(work->row);
    OF_TYPE(work->out, add_row)(at(DATA(work->out), work->out, from * n), DATA(work->row), to - from, n);
}

/* Of matrices that are not small; the bias is added in the same memory. */
static PyObject *linear_by_blas(PyArrayObject *x, PyArrayObject *weight, PyArrayObject *bias)
{
    PyObject *found = product_by_blas(as_matrix(x), PyArray_Transpose(weight, NULL));
    PyArrayObject *out = (PyArrayObject *)with_front_of(x, found);
    if (out != NULL && bias != NULL) {
        RowAdded work = {out, bias};
        npy_intp n = PyArray_SIZE(bias), rows = PyArray_SIZE(out) / n;
        SHARING(rows * n, LIGHT_SHARED, do_add_row, &work, rows, PART / n + 1);
    }
    return (PyObject *)out;
}

/* x, weight, bias */
static PyObject *linear(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Matrix x, weight, bias = {NULL};
    if (count != 3 || !is_rows(args[0], NULL, &x) || !is_matrix(args[1], x.array, 0, &weight)) {
        return declined();
    }
    weight = turned(weight);
    if (x.columns != weight.rows) {
        return declined();
    }
    if (args[2] != Py_None) {
        PyArrayObject *found = served_like(args[2], x.array);
        if (found == NULL || PyArray_NDIM(found) != 1 || PyArray_DIM(found, 0) != weight.columns) {
            return declined();
        }
        bias = (Matrix){found, 1, 1, weight.columns, 0, 0, 1};
    }
    if (!can_multiply(&x, &weight)) {
        return PyArray_SIZE(x.array) == 0 || weight.columns == 0 ||
                       !(PyArray_NDIM(x.array) == 2 || is_plain(x.array))
                   ? declined()
                   : linear_by_blas(x.array, weight.array, bias.array);
    }
    npy_intp shape[NPY_MAXDIMS];
    int ndim = PyArray_NDIM(x.array);
    memcpy(shape, PyArray_DIMS(x.array), (size_t)ndim * sizeof(npy_intp));
    shape[ndim - 1] = weight.columns;
    PyArrayObject *out = new_array(ndim, shape, PyArray_TYPE(x.array));
    if (out != NULL) {
        multiply_into(&x, &weight, bias.array == NULL ? NULL : &bias, 1, 1, out);
    }
    return (PyObject *)out;
}

/* grad.T @ x by BLAS. */
static PyObject *gradient_of_weight(PyArrayObject *grad, PyArrayObject *x)
{
    PyObject *rows = as_matrix(grad);
    PyObject *across = rows == NULL ? NULL : PyArray_Transpose((PyArrayObject *)rows, NULL);
    Py_XDECREF(rows);
    return product_by_blas(across, as_matrix(x));
}

/* x, grad, weight, which gradients are wanted */
static PyObject *linear_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Matrix x, grad, weight;
    if (count != 4 || !is_rows(args[0], NULL, &x) || !is_rows(args[1], x.array, &grad) ||
        !is_matrix(args[2], x.array, 0, &weight) || x.rows != grad.rows ||
        x.columns != weight.columns || !PyTuple_Check(args[3]) || PyTuple_GET_SIZE(args[3]) != 3) {
        return declined();
    }
    Matrix across = turned(grad);
    if (grad.columns != weight.rows) {
        return declined();
    }
    int small = can_multiply(&grad, &weight) && can_multiply(&across, &x);
    if (!small && (!is_plain(x.array) || !is_plain(grad.array) || PyArray_SIZE(x.array) == 0 ||
                   PyArray_SIZE(grad.array) == 0)) {
        return declined();
    }
    PyObject *parts[3];
    int type = PyArray_TYPE(x.array);
    for (int i = 0; i < 3; i++) {
        if (PyTuple_GET_ITEM(args[3], i) != Py_True) {
            parts[i] = Py_NewRef(Py_None);
            continue;
        }
        if (!small && i < 2) {
            parts[i] =
                i == 0 ? with_front_of(x.array, product_by_blas(as_matrix(grad.array),
                                                                Py_NewRef(weight.array)))
                       : gradient_of_weight(grad.array, x.array);
            continue;
        }
        PyArrayObject *out = i == 0   ? new_like(x.array)
                             : i == 1 ? new_like(weight.array)
                                      : new_array(1, &grad.columns, type);
        if (!small && out != NULL) {
            Sums work = {grad.array, out, grad.rows, grad.columns, 1.0};
            sum_columns(&work);
        } else if (i == 0 && out != NULL) {
            multiply_into(&grad, &weight, NULL, 0, 1, out);
        } else if (i == 1 && out != NULL) {
            multiply_into(&across, &x, NULL, 0, 1, out);
        } else if (out != NULL) {
            OF_TYPE(out, add_rows)
            (DATA(grad.array), grad.rows, grad.row_step, grad.columns, grad.column_step,
             DATA(out));
        }
        parts[i] = (PyObject *)out;
    }
    return results(3, parts);
}

#endif
