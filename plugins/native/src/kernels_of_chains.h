/* Several functions of elements, one after the other, block by block: what one gives the next one
   stays in the cache. */

#ifndef PLUGRAD_KERNELS_OF_CHAINS_H
#define PLUGRAD_KERNELS_OF_CHAINS_H

#include "kernels_of_elements.h"
#include "kernels_of_pairs.h"
#include "kernels_of_views.h"

#define CHAIN_BLOCK 1024
#define MOST_LINKS 16
#define MOST_INPUTS 16
#define MOST_REGISTERS 8

enum { OF_ONE, OF_TWO, OF_GRADIENT };

/* What a link computes; the loops of float32 and of float64. */
typedef struct {
    const char *name;
    int kind, heavy; /* heavy: it is more than to read and to write */
    Loop loops[2];
    PairLoop pair_loops[2];
    GradientLoop gradient_loops[2];
} Operation;

#define ONE_OF(name, loop, heavy) {name, OF_ONE, heavy, .loops = {loop##_float, loop##_double}}
#define TWO_OF(name, loop) {name, OF_TWO, 0, .pair_loops = {loop##_float, loop##_double}}
#define SLOPE_OF(name, loop, heavy)                                                                \
    {name, OF_GRADIENT, heavy, .gradient_loops = {loop##_float, loop##_double}}

static const Operation operations[] = {
    ONE_OF("neg", negative, 0),
    ONE_OF("abs", absolute, 0),
    ONE_OF("sqrt", square_root, 0),
    ONE_OF("square", square, 0),
    ONE_OF("cube", cube, 0),
    ONE_OF("reciprocal", reciprocal, 0),
    ONE_OF("rsqrt", reciprocal_root, 0),
    ONE_OF("relu", relu, 0),
    ONE_OF("exp", exponential, 1),
    ONE_OF("log", logarithm, 1),
    ONE_OF("sigmoid", sigmoid, 1),
    ONE_OF("tanh", hyperbolic_tangent, 1),
    ONE_OF("erf", error_function, 1),
    ONE_OF("silu", silu, 1),
    ONE_OF("gelu", gelu, 1),
    ONE_OF("gelu_tanh", gelu_tanh, 1),
    TWO_OF("add", sum_of_two),
    TWO_OF("sub", difference),
    TWO_OF("mul", product_of_two),
    TWO_OF("div", quotient),
    TWO_OF("maximum", larger),
    TWO_OF("minimum", smaller),
    SLOPE_OF("tanh_backward", tanh_backward, 0),
    SLOPE_OF("sigmoid_backward", sigmoid_backward, 0),
    SLOPE_OF("silu_backward", silu_backward, 1),
    SLOPE_OF("gelu_backward", gelu_backward, 1),
    SLOPE_OF("gelu_tanh_backward", gelu_tanh_backward, 1),
};

#undef ONE_OF
#undef TWO_OF
#undef SLOPE_OF

enum { INPUT, REGISTER, NUMBER };

/* Where a link finds an operand. */
typedef struct {
    int kind, index;
    double number;
} Source;

typedef struct {
    const Operation *operation;
    Source sources[2];
    int target; /* a register; the last link writes the result */
} ChainLink;

typedef struct {
    int links, inputs, heavy;
    ChainLink link[MOST_LINKS];
} Chain;

/* A chain at work: arrays, and numbers in both dtypes. */
typedef struct {
    const Chain *chain;
    const char *data[MOST_INPUTS]; /* NULL for a number */
    double numbers[MOST_INPUTS];
    char *out;
    int itemsize;
} Chaining;

static void do_chain(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Chaining *work = given;
    const Chain *chain = work->chain;
    int wide = work->itemsize == sizeof(double);
    _Alignas(64) char memory[MOST_REGISTERS][CHAIN_BLOCK * sizeof(double)];
    for (Py_ssize_t first = from; first < to; first += CHAIN_BLOCK) {
        npy_intp n = to - first < CHAIN_BLOCK ? to - first : CHAIN_BLOCK;
        for (int i = 0; i < chain->links; i++) {
            const ChainLink *link = &chain->link[i];
            const void *operands[2] = {NULL, NULL};
            int steps[2] = {1, 1};
            double numbers[2];
            float rounded[2];
            for (int k = 0; k < (link->operation->kind == OF_ONE ? 1 : 2); k++) {
                const Source *source = &link->sources[k];
                if (source->kind == REGISTER) {
                    operands[k] = memory[source->index];
                } else if (source->kind == INPUT && work->data[source->index] != NULL) {
                    operands[k] = work->data[source->index] + first * work->itemsize;
                } else {
                    numbers[k] = source->kind == NUMBER ? source->number
                                                        : work->numbers[source->index];
                    rounded[k] = (float)numbers[k];
                    operands[k] = wide ? (void *)&numbers[k] : (void *)&rounded[k];
                    steps[k] = 0;
                }
            }
            void *out = i == chain->links - 1 ? work->out + first * work->itemsize
                                              : memory[link->target];
            const Operation *operation = link->operation;
            if (operation->kind == OF_ONE) {
                operation->loops[wide](operands[0], out, n);
            } else if (operation->kind == OF_TWO) {
                operation->pair_loops[wide](operands[0], steps[0], operands[1], steps[1], out, n);
            } else {
                operation->gradient_loops[wide](operands[0], operands[1], out, n);
            }
        }
    }
}

static const char *const chain_name = "plugrad_native.chain";

static void free_chain(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, chain_name));
}

static const Operation *operation_of(PyObject *name)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
        if (is_word(name, operations[i].name)) {
            return &operations[i];
        }
    }
    return NULL;
}

/* An operand from ("input" or "register", index), or from a number; whether it is one. */
static int source_from(PyObject *given, const Operation *operation, int inputs, Source *source)
{
    if (PyTuple_Check(given) && PyTuple_GET_SIZE(given) == 2) {
        int of_input = is_word(PyTuple_GET_ITEM(given, 0), "input");
        npy_intp index = whole_from(PyTuple_GET_ITEM(given, 1));
        source->kind = of_input ? INPUT : REGISTER;
        source->index = (int)index;
        return index >= 0 && index < (of_input ? inputs : MOST_REGISTERS);
    }
    source->kind = NUMBER;
    if (operation->kind != OF_TWO || given == Py_None) {
        return 0;
    }
    if (PyFloat_Check(given)) {
        source->number = PyFloat_AS_DOUBLE(given); /* nan, too */
        return 1;
    }
    return number_or(given, 0, &source->number);
}

/* inputs, links: of each its name, its sources and its register. A capsule; NotImplemented for what
   cannot be a chain. */
static PyObject *make_chain(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    npy_intp inputs = count == 2 ? whole_from(args[0]) : -1;
    if (inputs < 1 || inputs > MOST_INPUTS || !PyTuple_Check(args[1]) ||
        PyTuple_GET_SIZE(args[1]) < 1 || PyTuple_GET_SIZE(args[1]) > MOST_LINKS) {
        return declined();
    }
    Chain *chain = PyMem_Calloc(1, sizeof(Chain));
    if (chain == NULL) {
        return PyErr_NoMemory();
    }
    chain->inputs = (int)inputs;
    chain->links = (int)PyTuple_GET_SIZE(args[1]);
    for (int i = 0; i < chain->links; i++) {
        PyObject *given = PyTuple_GET_ITEM(args[1], i);
        ChainLink *link = &chain->link[i];
        int good = PyTuple_Check(given) && PyTuple_GET_SIZE(given) == 3;
        link->operation = good ? operation_of(PyTuple_GET_ITEM(given, 0)) : NULL;
        PyObject *sources = good ? PyTuple_GET_ITEM(given, 1) : NULL;
        npy_intp target = good ? whole_from(PyTuple_GET_ITEM(given, 2)) : -1;
        good = link->operation != NULL && PyTuple_Check(sources) && target >= 0 &&
               target < MOST_REGISTERS;
        int wanted = good && link->operation->kind == OF_ONE ? 1 : 2;
        int arrays = 0;
        good = good && PyTuple_GET_SIZE(sources) == wanted;
        for (int k = 0; good && k < wanted; k++) {
            Source *source = &link->sources[k];
            good = source_from(PyTuple_GET_ITEM(sources, k), link->operation, (int)inputs, source);
            arrays += source->kind != NUMBER;
        }
        if (!good || arrays == 0) {
            PyMem_Free(chain);
            return declined();
        }
        link->target = (int)target;
        chain->heavy |= link->operation->heavy;
    }
    PyObject *capsule = PyCapsule_New(chain, chain_name, free_chain);
    if (capsule == NULL) {
        PyMem_Free(chain);
    }
    return capsule;
}

/* chain, inputs, and by name `out`: arrays of one shape and dtype, and numbers among them */
static PyObject *run_chain(PyObject *module, PyObject *const *args, Py_ssize_t count,
                           PyObject *names)
{
    PyObject *out;
    if (count < 2 || !PyCapsule_IsValid(args[0], chain_name) ||
        !named_out(args, count, names, &out)) {
        return declined();
    }
    const Chain *chain = PyCapsule_GetPointer(args[0], chain_name);
    Chaining work = {.chain = chain};
    PyArrayObject *first = NULL;
    if (count - 1 != chain->inputs) {
        return declined();
    }
    for (int i = 0; i < chain->inputs; i++) {
        PyObject *given = args[i + 1];
        if (PyFloat_Check(given)) {
            work.numbers[i] = PyFloat_AS_DOUBLE(given);
            continue;
        }
        PyArrayObject *a = first == NULL ? served(given) : served_like(given, first);
        if (a == NULL || (first != NULL && !PyArray_SAMESHAPE(a, first))) {
            return declined();
        }
        first = first == NULL ? a : first;
        work.data[i] = DATA(a);
    }
    if (first == NULL) {
        return declined();
    }
    for (int i = 0; i < chain->links; i++) { /* numbers are operands of arithmetic only, one a link */
        const ChainLink *link = &chain->link[i];
        int numbers = 0, operands = link->operation->kind == OF_ONE ? 1 : 2;
        for (int k = 0; k < operands; k++) {
            const Source *source = &link->sources[k];
            numbers += source->kind == NUMBER ||
                       (source->kind == INPUT && work.data[source->index] == NULL);
        }
        if (numbers > (link->operation->kind == OF_TWO ? 1 : 0)) {
            return declined();
        }
    }
    PyArrayObject *made = (PyArrayObject *)out;
    if (out == NULL) {
        made = new_like(first);
        if (made == NULL) {
            return NULL;
        }
    } else {
        made = served_like(out, first);
        if (made == NULL || !PyArray_SAMESHAPE(made, first) || !PyArray_ISWRITEABLE(made)) {
            return declined();
        }
        for (int i = 0; i < chain->inputs; i++) {
            const char *data = work.data[i];
            if (data != NULL && data < PyArray_BYTES(made) + PyArray_NBYTES(made) &&
                PyArray_BYTES(made) < data + PyArray_NBYTES(first)) {
                return declined();
            }
        }
        Py_INCREF(out);
    }
    work.out = DATA(made);
    work.itemsize = (int)PyArray_ITEMSIZE(first);
    npy_intp size = PyArray_SIZE(first);
    SHARING(size, chain->heavy ? SHARED : LIGHT_SHARED, do_chain, &work, size, PART);
    return (PyObject *)made;
}

#endif
