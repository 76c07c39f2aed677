/* Arithmetic and comparisons of two arrays, or of an array and a number.

   Mostly one of the operands has the result's shape. Of the other one each element stands for some
   that follow one another, and all of it may be repeated: a number, a row, a column, a bias of
   channels. Any others are walked through row by row, such as a column and a row. */

#ifndef PLUGRAD_KERNELS_OF_PAIRS_H
#define PLUGRAD_KERNELS_OF_PAIRS_H

#include "bfloat16.h"
#include "kinds.h"

typedef void (*PairLoop)(const void *, int, const void *, int, void *, npy_intp);

typedef struct {
    PairLoop of_float, of_double;
    int result; /* NPY_BOOL, or NPY_NOTYPE for the operands' dtype */
} Pair;

/* `whole` in `rows` of `middle` times `inner` elements; of `part`, each of `middle` elements stands
   for `inner`. */
typedef struct {
    PairLoop loop;
    const char *whole, *part;
    char *out;
    npy_intp size, rows, middle, inner;
    int swapped; /* whether `part` is the left operand */
    int bytes, out_bytes;
} Paired;

static inline void pair_up(const Paired *work, npy_intp first, npy_intp of_part, int step,
                           npy_intp n)
{
    const char *whole = work->whole + first * work->bytes;
    const char *part = work->part + of_part * work->bytes;
    char *out = work->out + first * work->out_bytes;
    if (work->swapped) {
        work->loop(part, step, whole, 1, out, n);
    } else {
        work->loop(whole, 1, part, step, out, n);
    }
}

/* Elements, of which each has its own or all have one number. */
static void do_pairs(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Paired *work = given;
    int step = work->middle > 1;
    pair_up(work, from, step ? from : 0, step, to - from);
}

/* Rows, to each of which all of `part` belongs. */
static void do_rows_of_pairs(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Paired *work = given;
    for (Py_ssize_t row = from; row < to; row++) {
        pair_up(work, row * work->middle, 0, 1, work->middle);
    }
}

/* Runs, to each of which one element of `part` belongs. */
static void do_runs_of_pairs(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Paired *work = given;
    for (Py_ssize_t run = from; run < to; run++) {
        pair_up(work, run * work->inner, run % work->middle, 0, work->inner);
    }
}

/* How an operand is repeated to the shape of `whole`; whether it is as `Paired` says. */
static int find_repeats(PyArrayObject *whole, PyArrayObject *part, Paired *work)
{
    int ndim = PyArray_NDIM(whole), missing = ndim - PyArray_NDIM(part);
    work->rows = work->middle = work->inner = 1;
    if (missing < 0) {
        return 0;
    }
    int place = 0; /* 0 among the last dimensions, 1 in the middle, 2 among the first */
    for (int d = ndim - 1; d >= 0; d--) {
        npy_intp size = PyArray_DIM(whole, d);
        npy_intp own = d < missing ? 1 : PyArray_DIM(part, d - missing);
        if (own != size && own != 1) {
            return 0;
        }
        if (size == 1) {
            continue;
        }
        npy_intp stride = own == 1 ? 0 : PyArray_STRIDE(part, d - missing);
        if (stride == 0) {
            place = place == 1 ? 2 : place;
        } else if (place == 2 || stride != work->middle * PyArray_ITEMSIZE(part)) {
            return 0;
        } else {
            place = 1;
        }
        if (place == 0) {
            work->inner *= size;
        } else if (place == 1) {
            work->middle *= size;
        } else {
            work->rows *= size;
        }
    }
    return 1;
}

/* Whether a result of this shape and type can be written to an array. */
static int is_result(PyObject *out, int ndim, const npy_intp *shape, int type)
{
    PyArrayObject *made = (PyArrayObject *)out;
    return PyArray_CheckExact(out) && PyArray_TYPE(made) == type && is_plain(made) &&
           PyArray_ISWRITEABLE(made) && PyArray_NDIM(made) == ndim &&
           PyArray_CompareLists(PyArray_DIMS(made), shape, ndim);
}

/* Whether some memory may be written while an operand is read, element by element. */
static int is_apart(const Paired *work, PyArrayObject *operand, int is_whole)
{
    const char *first = PyArray_BYTES(operand);
    if (is_whole && first == work->out && work->bytes == work->out_bytes) {
        return 1;
    }
    return first >= work->out + work->size * work->out_bytes ||
           work->out >= first + PyArray_NBYTES(operand);
}

/* Operands in rows of the result, along dimensions of which the innermost comes first; steps are in
   bytes, and 0 where an operand is repeated. */
typedef struct {
    PairLoop loop;
    int ndim;
    npy_intp shape[NPY_MAXDIMS], steps[2][NPY_MAXDIMS];
    const char *operands[2];
    char *out;
    npy_intp out_row; /* bytes */
} Crossed;

static void do_crossed(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Crossed *work = given;
    npy_intp index[NPY_MAXDIMS];
    const char *left = work->operands[0], *right = work->operands[1];
    Py_ssize_t rest = from;
    for (int d = 1; d < work->ndim; d++) {
        index[d] = rest % work->shape[d];
        rest /= work->shape[d];
        left += index[d] * work->steps[0][d];
        right += index[d] * work->steps[1][d];
    }
    int left_step = work->steps[0][0] != 0, right_step = work->steps[1][0] != 0;
    for (Py_ssize_t row = from; row < to; row++) {
        char *out = work->out + row * work->out_row;
        work->loop(left, left_step, right, right_step, out, work->shape[0]);
        for (int d = 1; d < work->ndim; d++) {
            left += work->steps[0][d];
            right += work->steps[1][d];
            if (++index[d] < work->shape[d]) {
                break;
            }
            index[d] = 0;
            left -= work->shape[d] * work->steps[0][d];
            right -= work->shape[d] * work->steps[1][d];
        }
    }
}

/* How two operands are walked through, and the shape of their result; its rank, or -1 if one of them
   lies in memory in another order than that of rows, or they do not fit. */
static int find_crossing(PyArrayObject *const *operands, npy_intp *shape, Crossed *work)
{
    int ranks[2] = {PyArray_NDIM(operands[0]), PyArray_NDIM(operands[1])};
    int ndim = ranks[0] > ranks[1] ? ranks[0] : ranks[1];
    npy_intp last[2] = {0, 0}, itemsize = PyArray_ITEMSIZE(operands[0]);
    work->ndim = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        npy_intp sizes[2], steps[2];
        for (int k = 0; k < 2; k++) {
            int own = d - ndim + ranks[k];
            sizes[k] = own < 0 ? 1 : PyArray_DIM(operands[k], own);
            steps[k] = sizes[k] == 1 ? 0 : PyArray_STRIDE(operands[k], own);
        }
        shape[d] = sizes[0] == 1 ? sizes[1] : sizes[0];
        if (shape[d] == 0 || (sizes[1] != 1 && sizes[1] != shape[d])) {
            return -1;
        }
        if (shape[d] == 1) {
            continue;
        }
        int inner = work->ndim - 1, is_joined = inner >= 0;
        for (int k = 0; k < 2; k++) {
            if (steps[k] != 0 && steps[k] < last[k]) {
                return -1;
            }
            last[k] = steps[k] != 0 ? steps[k] : last[k];
            is_joined = is_joined && steps[k] == work->steps[k][inner] * work->shape[inner];
        }
        if (is_joined) {
            work->shape[inner] *= shape[d];
            continue;
        }
        work->shape[work->ndim] = shape[d];
        work->steps[0][work->ndim] = steps[0];
        work->steps[1][work->ndim++] = steps[1];
    }
    if (work->ndim == 0) {
        return -1;
    }
    npy_intp left = work->steps[0][0], right = work->steps[1][0];
    int walks = (left == itemsize || left == 0) && (right == itemsize || right == 0);
    return walks && (left != 0 || right != 0) ? ndim : -1;
}

/* Whether an operand is not in the memory of the result, unless it is the result itself. */
static int is_outside(PyArrayObject *operand, PyArrayObject *out)
{
    if (operand == out) {
        return 1;
    }
    npy_intp before = 0;
    for (int d = 0; d < PyArray_NDIM(operand); d++) {
        before += (PyArray_DIM(operand, d) - 1) * PyArray_STRIDE(operand, d);
    }
    const char *end = PyArray_BYTES(operand) + before + PyArray_ITEMSIZE(operand);
    return PyArray_BYTES(operand) >= PyArray_BYTES(out) + PyArray_NBYTES(out) ||
           PyArray_BYTES(out) >= end;
}

/* Two operands of which neither has the result's shape and order. */
static PyObject *crossed(const Pair *pair, PyArrayObject *const *operands, PyObject *out)
{
    Crossed work;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = find_crossing(operands, shape, &work);
    if (ndim < 0) {
        return declined();
    }
    int type = pair->result == NPY_BOOL ? NPY_BOOL : PyArray_TYPE(operands[0]);
    PyArrayObject *made = (PyArrayObject *)out;
    if (out == NULL) {
        made = new_array(ndim, shape, type);
        if (made == NULL) {
            return NULL;
        }
    } else if (!is_result(out, ndim, shape, type) || !is_outside(operands[0], made) ||
               !is_outside(operands[1], made)) {
        return declined();
    } else {
        Py_INCREF(out);
    }
    work.loop = PyArray_TYPE(operands[0]) == NPY_FLOAT ? pair->of_float : pair->of_double;
    work.operands[0] = PyArray_BYTES(operands[0]);
    work.operands[1] = PyArray_BYTES(operands[1]);
    work.out = PyArray_BYTES(made);
    work.out_row = work.shape[0] * PyArray_ITEMSIZE(made);
    npy_intp size = PyArray_SIZE(made);
    SHARING(size, LIGHT_SHARED, do_crossed, &work, size / work.shape[0],
            rows_of_part(work.shape[0]));
    return (PyObject *)made;
}

static int is_operand(PyObject *given)
{
    PyArrayObject *a = (PyArrayObject *)given;
    return PyArray_CheckExact(given) && is_real(a) && PyArray_ISALIGNED(a) &&
           PyArray_ISNOTSWAPPED(a);
}

/* Two arrays of bfloat16 of one shape. */
typedef struct {
    PairLoop loop;
    const npy_uint16 *operands[2];
    char *out;
    int out_bytes; /* 1 if the result is one of truth values */
} NarrowPair;

static void do_narrow_pairs(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const NarrowPair *work = given;
    float left[NARROW_BLOCK], right[NARROW_BLOCK], made[NARROW_BLOCK];
    for (npy_intp i = from; i < to; i += NARROW_BLOCK) {
        npy_intp n = to - i < NARROW_BLOCK ? to - i : NARROW_BLOCK;
        char *out = work->out + i * work->out_bytes;
        widen(work->operands[0] + i, left, n);
        widen(work->operands[1] + i, right, n);
        if (work->out_bytes == 1) {
            work->loop(left, 1, right, 1, out, n);
        } else {
            work->loop(left, 1, right, 1, made, n);
            narrow(made, out, n);
        }
    }
}

static PyObject *narrow_pair(const Pair *pair, PyArrayObject *left, PyArrayObject *right,
                             PyObject *out)
{
    int ndim = PyArray_NDIM(left), compares = pair->result == NPY_BOOL;
    npy_intp *shape = PyArray_DIMS(left), size = PyArray_SIZE(left);
    PyArrayObject *made = (PyArrayObject *)out;
    if (!PyArray_SAMESHAPE(left, right)) {
        return declined();
    }
    if (out == NULL) {
        made = compares ? new_array(ndim, shape, NPY_BOOL) : new_of(left, ndim, shape);
        if (made == NULL) {
            return NULL;
        }
    } else {
        int type = compares ? NPY_BOOL : PyArray_TYPE(left);
        Paired work = {.out = PyArray_BYTES(made), .size = size, .bytes = 2};
        work.out_bytes = compares ? 1 : 2;
        if (!is_result(out, ndim, shape, type) || !is_apart(&work, left, 1) ||
            !is_apart(&work, right, 1)) {
            return declined();
        }
        Py_INCREF(out);
    }
    NarrowPair work = {pair->of_float, {DATA(left), DATA(right)}, PyArray_BYTES(made),
                       (int)PyArray_ITEMSIZE(made)};
    SHARING(size, LIGHT_SHARED, do_narrow_pairs, &work, size, PART);
    return (PyObject *)made;
}

/* Two operands; the result goes to `out`, or to an array of its own if that is NULL. */
static PyObject *paired(const Pair *pair, PyObject *left, PyObject *right, PyObject *out)
{
    PyArrayObject *operands[2] = {is_operand(left) ? (PyArrayObject *)left : NULL,
                                  is_operand(right) ? (PyArrayObject *)right : NULL};
    if (operands[0] == NULL && operands[1] == NULL) {
        PyArrayObject *narrow = served_narrow(left), *other = served_narrow(right);
        return narrow != NULL && other != NULL ? narrow_pair(pair, narrow, other, out) : declined();
    }
    Paired work = {.rows = 1, .middle = 1};
    double number;
    float rounded;
    if (operands[0] != NULL && operands[1] != NULL) {
        if (PyArray_TYPE(operands[0]) != PyArray_TYPE(operands[1])) {
            return declined();
        }
        work.swapped = !PyArray_IS_C_CONTIGUOUS(operands[0]) ||
                       !find_repeats(operands[0], operands[1], &work);
        if (work.swapped && (!PyArray_IS_C_CONTIGUOUS(operands[1]) ||
                             !find_repeats(operands[1], operands[0], &work))) {
            return crossed(pair, operands, out);
        }
        work.part = PyArray_BYTES(operands[!work.swapped]);
    } else {
        work.swapped = operands[0] == NULL;
        PyObject *given = work.swapped ? left : right;
        if (operands[work.swapped] == NULL || !PyArray_IS_C_CONTIGUOUS(operands[work.swapped]) ||
            !(PyFloat_Check(given) || PyLong_Check(given))) {
            return declined();
        }
        number = PyFloat_AsDouble(given);
        if (number == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return declined();
        }
        rounded = (float)number;
        work.part = PyArray_TYPE(operands[work.swapped]) == NPY_FLOAT ? (char *)&rounded
                                                                      : (char *)&number;
        work.inner = PyArray_SIZE(operands[work.swapped]);
    }
    PyArrayObject *whole = operands[work.swapped], *part = operands[!work.swapped];
    int type = pair->result == NPY_BOOL ? NPY_BOOL : PyArray_TYPE(whole);
    PyArrayObject *made = (PyArrayObject *)out;
    if (out == NULL) {
        made = new_array(PyArray_NDIM(whole), PyArray_DIMS(whole), type);
        if (made == NULL) {
            return NULL;
        }
    } else if (!is_result(out, PyArray_NDIM(whole), PyArray_DIMS(whole), type)) {
        return declined();
    }
    work.loop = PyArray_TYPE(whole) == NPY_FLOAT ? pair->of_float : pair->of_double;
    work.whole = PyArray_BYTES(whole);
    work.out = PyArray_BYTES(made);
    work.size = PyArray_SIZE(whole);
    work.bytes = (int)PyArray_ITEMSIZE(whole);
    work.out_bytes = (int)PyArray_ITEMSIZE(made);
    int alone = work.rows == 1 && (work.middle == 1 || work.inner == 1);
    if (out != NULL &&
        (!is_apart(&work, whole, 1) ||
         (part != NULL && !is_apart(&work, part, alone && work.middle > 1)))) {
        return declined();
    }
    if (out != NULL) {
        Py_INCREF(out);
    }
    if (work.size == 0) {
        return (PyObject *)made;
    }
    if (alone) {
        SHARING(work.size, LIGHT_SHARED, do_pairs, &work, work.size, PART);
    } else if (work.inner == 1) {
        SHARING(work.size, LIGHT_SHARED, do_rows_of_pairs, &work, work.rows,
                rows_of_part(work.middle));
    } else {
        SHARING(work.size, LIGHT_SHARED, do_runs_of_pairs, &work, work.rows * work.middle,
                rows_of_part(work.inner));
    }
    return (PyObject *)made;
}

/* Two operands, and by name `out`. */
static PyObject *pair_of(const Pair *pair, PyObject *const *args, Py_ssize_t count,
                         PyObject *names)
{
    PyObject *out;
    return count == 2 && named_out(args, count, names, &out) ? paired(pair, args[0], args[1], out)
                                                             : declined();
}

/* The result goes to the first operand. */
static PyObject *pair_into_first(const Pair *pair, PyObject *const *args, Py_ssize_t count)
{
    return count == 2 ? paired(pair, args[0], args[1], args[0]) : declined();
}

#define PAIR_OF(name, loop, result)                                                                \
    static const Pair name##_loops = {loop##_float, loop##_double, result};                         \
    static PyObject *name##_pair(PyObject *module, PyObject *const *args, Py_ssize_t count,        \
                          PyObject *names)                                                         \
    {                                                                                              \
        return pair_of(&name##_loops, args, count, names);                                          \
    }
#define PAIR_INTO_FIRST(name)                                                                      \
    static PyObject *name##_pair_into(PyObject *module, PyObject *const *args, Py_ssize_t count)        \
    {                                                                                              \
        return pair_into_first(&name##_loops, args, count);                                         \
    }

PAIR_OF(add, sum_of_two, NPY_NOTYPE)
PAIR_OF(sub, difference, NPY_NOTYPE)
PAIR_OF(mul, product_of_two, NPY_NOTYPE)
PAIR_OF(div, quotient, NPY_NOTYPE)
PAIR_OF(maximum, larger, NPY_NOTYPE)
PAIR_OF(minimum, smaller, NPY_NOTYPE)
PAIR_OF(eq, equal_to, NPY_BOOL)
PAIR_OF(ne, other_than, NPY_BOOL)
PAIR_OF(lt, less_than, NPY_BOOL)
PAIR_OF(le, at_most, NPY_BOOL)
PAIR_OF(gt, greater_than, NPY_BOOL)
PAIR_OF(ge, at_least, NPY_BOOL)
PAIR_INTO_FIRST(add)
PAIR_INTO_FIRST(sub)
PAIR_INTO_FIRST(mul)
PAIR_INTO_FIRST(div)

#undef PAIR_OF
#undef PAIR_INTO_FIRST

#endif
