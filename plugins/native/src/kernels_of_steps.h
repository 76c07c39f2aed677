/* Steps of optimizers: all parameters of a group in one call, in place. */

#ifndef PLUGRAD_KERNELS_OF_STEPS_H
#define PLUGRAD_KERNELS_OF_STEPS_H

#include "arrays.h"
#include "steps.h"

/* A number among the arguments; whether it is one. */
static int is_number(PyObject *given, double *number)
{
    if (!PyFloat_Check(given) && !PyLong_Check(given)) {
        return 0;
    }
    *number = PyFloat_AsDouble(given);
    if (*number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* Whether it is a list of `count` arrays that are served, in each place of the size and dtype of
   `first`'s, or an empty one where that is allowed. */
static int is_list_like(PyObject *given, PyObject *first, int may_be_empty, int is_written)
{
    if (!PyList_Check(given)) {
        return 0;
    }
    Py_ssize_t count = PyList_GET_SIZE(given);
    if (count == 0 && may_be_empty) {
        return 1;
    }
    if (count != PyList_GET_SIZE(first)) {
        return 0;
    }
    PyArrayObject *leader = served(PyList_GET_ITEM(first, 0));
    for (Py_ssize_t i = 0; leader != NULL && i < count; i++) {
        PyArrayObject *one = served_like(PyList_GET_ITEM(given, i), leader);
        PyArrayObject *other = served_like(PyList_GET_ITEM(first, i), leader);
        if (one == NULL || other == NULL || PyArray_SIZE(one) != PyArray_SIZE(other) ||
            (is_written && !PyArray_ISWRITEABLE(one))) {
            return 0;
        }
    }
    return leader != NULL;
}

/* The memory of the array at a place of a list; NULL of an empty list. */
static void *memory_at(PyObject *list, Py_ssize_t place)
{
    return PyList_GET_SIZE(list) ? DATA((PyArrayObject *)PyList_GET_ITEM(list, place)) : NULL;
}

/* parameters, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize */
static PyObject *update_sgd(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    SgdNumbers numbers;
    if (count != 9 || !PyList_Check(args[0]) || PyList_GET_SIZE(args[0]) == 0 ||
        !is_list_like(args[0], args[0], 0, 1) || !is_list_like(args[1], args[0], 0, 0) ||
        !is_list_like(args[2], args[0], 1, 1) || !is_number(args[3], &numbers.lr) ||
        !is_number(args[4], &numbers.momentum) || !is_number(args[5], &numbers.dampening) ||
        !is_number(args[6], &numbers.weight_decay)) {
        return declined();
    }
    numbers.nesterov = args[7] == Py_True;
    numbers.maximize = args[8] == Py_True;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); i++) {
        PyArrayObject *p = (PyArrayObject *)PyList_GET_ITEM(args[0], i);
        npy_intp n = PyArray_SIZE(p);
        void *grad = memory_at(args[1], i), *buffer = memory_at(args[2], i);
        RELEASING_LOCK(n, OF_TYPE(p, sgd_step)(DATA(p), grad, buffer, n, &numbers));
    }
    Py_RETURN_NONE;
}

/* parameters, grads, means, squares, largest squares, rates, epsilons, beta1, beta2, decay,
   weight_decay, maximize */
static PyObject *update_adam(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    AdamNumbers numbers;
    if (count != 12 || !PyList_Check(args[0]) || PyList_GET_SIZE(args[0]) == 0 ||
        !is_list_like(args[0], args[0], 0, 1) || !is_list_like(args[1], args[0], 0, 0) ||
        !is_list_like(args[2], args[0], 0, 1) || !is_list_like(args[3], args[0], 0, 1) ||
        !is_list_like(args[4], args[0], 1, 1) || !is_number(args[7], &numbers.beta1) ||
        !is_number(args[8], &numbers.beta2) || !is_number(args[9], &numbers.decay) ||
        !is_number(args[10], &numbers.weight_decay)) {
        return declined();
    }
    numbers.maximize = args[11] == Py_True;
    Py_ssize_t places = PyList_GET_SIZE(args[0]);
    double rate = 0, epsilon = 0;
    for (int each = 5; each < 7; each++) {
        if (!PyList_Check(args[each]) && !PyTuple_Check(args[each])) {
            return declined();
        }
        if (PySequence_Fast_GET_SIZE(args[each]) != places) {
            return declined();
        }
        for (Py_ssize_t i = 0; i < places; i++) {
            if (!is_number(PySequence_Fast_GET_ITEM(args[each], i), &rate)) {
                return declined();
            }
        }
    }
    for (Py_ssize_t i = 0; i < places; i++) {
        PyArrayObject *p = (PyArrayObject *)PyList_GET_ITEM(args[0], i);
        npy_intp n = PyArray_SIZE(p);
        void *grad = memory_at(args[1], i), *mean = memory_at(args[2], i);
        void *square = memory_at(args[3], i), *largest = memory_at(args[4], i);
        is_number(PySequence_Fast_GET_ITEM(args[5], i), &rate);
        is_number(PySequence_Fast_GET_ITEM(args[6], i), &epsilon);
        RELEASING_LOCK(n, OF_TYPE(p, adam_step)(DATA(p), grad, mean, square, largest, n, rate,
                                                epsilon, &numbers));
    }
    Py_RETURN_NONE;
}

#endif
