/* Functions of each element of an array, and their gradients. */

#ifndef PLUGRAD_KERNELS_OF_ELEMENTS_H
#define PLUGRAD_KERNELS_OF_ELEMENTS_H

#include "bfloat16.h"
#include "kinds.h"

typedef void (*Loop)(const void *, void *, npy_intp);
typedef void (*GradientLoop)(const void *, const void *, void *, npy_intp);

/* A loop over elements, with what it reads and writes. */
typedef struct {
    Loop loop;
    GradientLoop gradient_loop;
    PyArrayObject *grad, *a, *out;
    npy_intp least; /* from how many elements on threads share it */
} Elements;

static void do_elements(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Elements *work = given;
    const void *a = at(DATA(work->a), work->a, from);
    void *out = at(DATA(work->out), work->a, from);
    if (work->grad == NULL) {
        work->loop(a, out, to - from);
    } else {
        work->gradient_loop(at(DATA(work->grad), work->a, from), a, out, to - from);
    }
}

/* The same of bfloat16, by loops of float32. */
static void do_narrow_elements(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Elements *work = given;
    float a[NARROW_BLOCK], grad[NARROW_BLOCK], out[NARROW_BLOCK];
    for (npy_intp i = from; i < to; i += NARROW_BLOCK) {
        npy_intp n = to - i < NARROW_BLOCK ? to - i : NARROW_BLOCK;
        widen(at(DATA(work->a), work->a, i), a, n);
        if (work->grad == NULL) {
            work->loop(a, out, n);
        } else {
            widen(at(DATA(work->grad), work->a, i), grad, n);
            work->gradient_loop(grad, a, out, n);
        }
        narrow(out, at(DATA(work->out), work->a, i), n);
    }
}

static void run_elements(const Elements *work)
{
    Part part = is_real(work->a) ? do_elements : do_narrow_elements;
    SHARING(PyArray_SIZE(work->a), work->least, part, work, PyArray_SIZE(work->a), PART);
}

/* An array of bfloat16, too. */
static PyArrayObject *served_element(PyObject *given)
{
    PyArrayObject *a = served(given);
    return a == NULL ? served_narrow(given) : a;
}

/* The result goes to `out`, or to an array of its own if that is NULL. */
static PyObject *each(PyObject *given, PyObject *out, Loop of_float, Loop of_double, npy_intp least)
{
    PyArrayObject *a = served_element(given);
    PyArrayObject *made = NULL;
    if (a != NULL && out == NULL) {
        made = new_of(a, PyArray_NDIM(a), PyArray_DIMS(a));
    } else if (a != NULL) {
        made = served_like(out, a);
        if (made == NULL || !PyArray_SAMESHAPE(made, a) || !PyArray_ISWRITEABLE(made) ||
            (DATA(made) < DATA(a) + PyArray_NBYTES(a) &&
             DATA(a) < DATA(made) + PyArray_NBYTES(a))) {
            return declined();
        }
        Py_INCREF(out);
    }
    if (made == NULL) {
        return failed();
    }
    Elements work = {.loop = PyArray_TYPE(a) == NPY_DOUBLE ? of_double : of_float,
                     .a = a,
                     .out = made,
                     .least = least};
    run_elements(&work);
    return (PyObject *)made;
}

/* A function of one array, and by name `out`. */
#define EACH(name, loop, least)                                                                    \
    static PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count,               \
                          PyObject *names)                                                         \
    {                                                                                              \
        PyObject *out;                                                                             \
        return count == 1 && named_out(args, count, names, &out)                                   \
                   ? each(args[0], out, loop##_float, loop##_double, least)                        \
                   : declined();                                                                   \
    }

EACH(relu, relu, LIGHT_SHARED)
EACH(negative, negative, LIGHT_SHARED)
EACH(absolute, absolute, LIGHT_SHARED)
EACH(square_root, square_root, LIGHT_SHARED)
EACH(reciprocal, reciprocal, LIGHT_SHARED)
EACH(reciprocal_root, reciprocal_root, LIGHT_SHARED)
EACH(exponential, exponential, SHARED)
EACH(logarithm, logarithm, SHARED)
EACH(sigmoid, sigmoid, SHARED)
EACH(tangent, hyperbolic_tangent, SHARED)
EACH(error_function, error_function, SHARED)
EACH(silu, silu, SHARED)

#undef EACH

/* a, exponent, and by name `out`: the powers that take no logarithm */
static PyObject *power(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *out;
    if (count != 2 || !named_out(args, count, names, &out) ||
        !(PyFloat_CheckExact(args[1]) || PyLong_CheckExact(args[1]))) {
        return declined();
    }
    double exponent = PyFloat_AsDouble(args[1]);
    if (PyErr_Occurred()) { /* an integer too large */
        PyErr_Clear();
        return declined();
    }
    if (exponent == 2) {
        return each(args[0], out, square_float, square_double, LIGHT_SHARED);
    }
    if (exponent == 3) {
        return each(args[0], out, cube_float, cube_double, LIGHT_SHARED);
    }
    if (exponent == 0.5) {
        return each(args[0], out, square_root_float, square_root_double, LIGHT_SHARED);
    }
    if (exponent == -1) {
        return each(args[0], out, reciprocal_float, reciprocal_double, LIGHT_SHARED);
    }
    return declined();
}

/* grad, a */
static PyObject *gradient_of_each(PyObject *const *args, GradientLoop of_float,
                                  GradientLoop of_double, npy_intp least)
{
    PyArrayObject *a = served_element(args[1]);
    PyArrayObject *grad = a == NULL ? NULL : gradient_like(args[0], a);
    if (grad == NULL) {
        return failed();
    }
    PyArrayObject *out = new_of(a, PyArray_NDIM(a), PyArray_DIMS(a));
    if (out != NULL) {
        Elements work = {.gradient_loop = PyArray_TYPE(a) == NPY_DOUBLE ? of_double : of_float,
                         .grad = grad,
                         .a = a,
                         .out = out,
                         .least = least};
        run_elements(&work);
    }
    Py_DECREF(grad);
    return (PyObject *)out;
}

static PyObject *tanh_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count != 2 ? declined()
                      : gradient_of_each(args, tanh_backward_float, tanh_backward_double,
                                         LIGHT_SHARED);
}

static PyObject *sigmoid_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count != 2 ? declined()
                      : gradient_of_each(args, sigmoid_backward_float, sigmoid_backward_double,
                                         LIGHT_SHARED);
}

static PyObject *silu_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return count == 2 ? gradient_of_each(args, silu_backward_float, silu_backward_double, SHARED)
                      : declined();
}

/* a, approximate */
static PyObject *gelu(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count == 2 && is_word(args[1], "none")) {
        return each(args[0], NULL, gelu_float, gelu_double, SHARED);
    }
    if (count == 2 && is_word(args[1], "tanh")) {
        return each(args[0], NULL, gelu_tanh_float, gelu_tanh_double, SHARED);
    }
    return declined();
}

/* grad, a, approximate */
static PyObject *gelu_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count == 3 && is_word(args[2], "none")) {
        return gradient_of_each(args, gelu_backward_float, gelu_backward_double, SHARED);
    }
    if (count == 3 && is_word(args[2], "tanh")) {
        return gradient_of_each(args, gelu_tanh_backward_float, gelu_tanh_backward_double, SHARED);
    }
    return declined();
}

/* The same for loops with a limit, or two. */
typedef struct {
    PyArrayObject *grad, *a, *out;
    double low, high;
} Limited;

static void do_threshold_backward(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Limited *work = given;
    PyArrayObject *a = work->a;
    OF_TYPE(a, threshold_backward)
    (at(DATA(work->grad), a, from), at(DATA(a), a, from), at(DATA(work->out), a, from), to - from,
     work->low);
}

static void do_clamp(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Limited *work = given;
    PyArrayObject *a = work->a;
    OF_TYPE(a, clamp)
    (at(DATA(a), a, from), at(DATA(work->out), a, from), to - from, work->low, work->high);
}

/* grad, a, limit */
static PyObject *threshold_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 3 ? served(args[1]) : NULL;
    double limit;
    if (a == NULL || args[2] == Py_None || !number_or(args[2], 0, &limit)) {
        return declined();
    }
    PyArrayObject *grad = gradient_like(args[0], a);
    if (grad == NULL) {
        return failed();
    }
    PyArrayObject *out = new_like(a);
    if (out != NULL) {
        Limited work = {grad, a, out, limit, 0};
        SHARING(PyArray_SIZE(a), LIGHT_SHARED, do_threshold_backward, &work, PyArray_SIZE(a),
                PART);
    }
    Py_DECREF(grad);
    return (PyObject *)out;
}

/* a, low, high */
static PyObject *clamp(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 3 ? served(args[0]) : NULL;
    double low, high;
    if (a == NULL || !number_or(args[1], -INFINITY, &low) || !number_or(args[2], INFINITY, &high)) {
        return declined();
    }
    PyArrayObject *out = new_like(a);
    if (out != NULL) {
        Limited work = {NULL, a, out, low, high};
        SHARING(PyArray_SIZE(a), LIGHT_SHARED, do_clamp, &work, PyArray_SIZE(a), PART);
    }
    return (PyObject *)out;
}

#endif
