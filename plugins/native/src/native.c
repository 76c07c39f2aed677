/* Kernels of plugrad on contiguous float32 and float64 arrays of NumPy.

   Each function takes what the kernel of its operator in plugrad-cpu takes, and returns what that
   returns, or NotImplemented where it does not serve the arguments.

   MODULE is the name of the module: the file is compiled once for every processor of a kind, and
   once for those with certain instructions. */

#include "kernels_of_channels.h"
#include "kernels_of_indices.h"
#include "kernels_of_losses.h"
#include "kernels_of_rows.h"
#include "kernels_of_steps.h"
#include "kernels_of_windows.h"

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

static PyObject *each(PyObject *given, Loop of_float, Loop of_double, npy_intp least)
{
    PyArrayObject *a = served(given);
    PyArrayObject *out = a == NULL ? NULL : new_like(a);
    if (out == NULL) {
        return failed();
    }
    Elements work = {.loop = PyArray_TYPE(a) == NPY_FLOAT ? of_float : of_double,
                     .a = a,
                     .out = out,
                     .least = least};
    SHARING(PyArray_SIZE(a), work.least, do_elements, &work, PyArray_SIZE(a), PART);
    return (PyObject *)out;
}

/* grad, a */
static PyObject *gradient_of_each(PyObject *const *args, GradientLoop of_float,
                                  GradientLoop of_double, npy_intp least)
{
    PyArrayObject *a = served(args[1]);
    PyArrayObject *grad = a == NULL ? NULL : gradient_like(args[0], a);
    if (grad == NULL) {
        return failed();
    }
    PyArrayObject *out = new_like(a);
    if (out != NULL) {
        Elements work = {.gradient_loop = PyArray_TYPE(a) == NPY_FLOAT ? of_float : of_double,
                         .grad = grad,
                         .a = a,
                         .out = out,
                         .least = least};
        SHARING(PyArray_SIZE(a), work.least, do_elements, &work, PyArray_SIZE(a), PART);
    }
    Py_DECREF(grad);
    return (PyObject *)out;
}

static PyObject *relu(PyObject *module, PyObject *a)
{
    return each(a, relu_float, relu_double, LIGHT_SHARED);
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

static PyObject *exponential(PyObject *module, PyObject *a)
{
    return each(a, exponential_float, exponential_double, SHARED);
}

static PyObject *logarithm(PyObject *module, PyObject *a)
{
    return each(a, logarithm_float, logarithm_double, SHARED);
}

static PyObject *sigmoid(PyObject *module, PyObject *a)
{
    return each(a, sigmoid_float, sigmoid_double, SHARED);
}

static PyObject *tangent(PyObject *module, PyObject *a)
{
    return each(a, hyperbolic_tangent_float, hyperbolic_tangent_double, SHARED);
}

static PyObject *error_function(PyObject *module, PyObject *a)
{
    return each(a, error_function_float, error_function_double, SHARED);
}

static PyObject *silu(PyObject *module, PyObject *a)
{
    return each(a, silu_float, silu_double, SHARED);
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
        return each(args[0], gelu_float, gelu_double, SHARED);
    }
    if (count == 2 && is_word(args[1], "tanh")) {
        return each(args[0], gelu_tanh_float, gelu_tanh_double, SHARED);
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

/* A loop with a limit, or two. */
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
    } else if (rows == 1 && n >= LIGHT_SHARED) {
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

/* Arrays of any one dtype joined along a dimension, one that is new for `stack`: arrays, dim. */
static PyObject *join(PyObject *const *args, Py_ssize_t given, int is_new)
{
    if (given != 2 || !PyList_Check(args[0])) {
        return declined();
    }
    Py_ssize_t count = PyList_GET_SIZE(args[0]);
    PyArrayObject *first = count ? (PyArrayObject *)PyList_GET_ITEM(args[0], 0) : NULL;
    if (first == NULL || !PyArray_CheckExact(first)) {
        return declined();
    }
    PyArray_Descr *dtype = PyArray_DESCR(first);
    int ndim = PyArray_NDIM(first) + is_new;
    int dim = dimension_of(args[1], ndim);
    if (dim < 0 || ndim > NPY_MAXDIMS || PyDataType_REFCHK(dtype)) {
        return declined();
    }
    npy_intp shape[NPY_MAXDIMS], total = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyArrayObject *one = (PyArrayObject *)PyList_GET_ITEM(args[0], i);
        if (!PyArray_CheckExact(one) || PyArray_DESCR(one) != dtype ||
            PyArray_NDIM(one) != PyArray_NDIM(first) || !PyArray_IS_C_CONTIGUOUS(one)) {
            return declined();
        }
        for (int d = 0; d < PyArray_NDIM(one); d++) {
            if ((is_new || d != dim) && PyArray_DIM(one, d) != PyArray_DIM(first, d)) {
                return declined();
            }
        }
        total += is_new ? 1 : PyArray_DIM(one, dim);
    }
    for (int d = 0, source = 0; d < ndim; d++) {
        shape[d] = is_new && d == dim ? 0 : PyArray_DIM(first, source++);
    }
    shape[dim] = total;
    Py_INCREF(dtype);
    PyArrayObject *out = (PyArrayObject *)PyArray_Empty(ndim, shape, dtype, 0);
    npy_intp size = out == NULL ? 0 : PyArray_SIZE(out);
    if (size == 0) {
        return (PyObject *)out;
    }
    npy_intp outer = product(out, 0, dim);
    char *target = DATA(out);
    for (npy_intp o = 0; o < outer; o++) {
        for (Py_ssize_t i = 0; i < count; i++) {
            PyArrayObject *one = (PyArrayObject *)PyList_GET_ITEM(args[0], i);
            npy_intp bytes = PyArray_NBYTES(one) / outer;
            memcpy(target, (char *)DATA(one) + o * bytes, (size_t)bytes);
            target += bytes;
        }
    }
    return (PyObject *)out;
}

static PyObject *cat(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return join(args, count, 0);
}

static PyObject *stack(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return join(args, count, 1);
}

#define SEVERAL(name, function, signature, what)                                                   \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))function, METH_FASTCALL,                                \
            name "($module, " signature ", /)\n--\n\n" what                                        \
    }
#define ALONE(name, function, what)                                                                \
    {                                                                                              \
        name, function, METH_O, name "($module, a, /)\n--\n\n" what                                \
    }

/* What tells how many threads are allowed, or None for one. */
static PyObject *use_thread_count(PyObject *module, PyObject *given)
{
    Py_XSETREF(thread_count, given == Py_None ? NULL : Py_NewRef(given));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    SEVERAL("softmax", softmax, "a, dim, half_to_float", "exp(a) over its sum along `dim`."),
    SEVERAL("log_softmax", log_softmax, "a, dim, half_to_float", "The logarithm of softmax."),
    SEVERAL("softmax_backward", softmax_backward, "grad, output, dim, input_dtype",
            "The gradient of softmax."),
    SEVERAL("log_softmax_backward", log_softmax_backward, "grad, output, dim, input_dtype",
            "The gradient of log_softmax."),
    SEVERAL("layer_norm", layer_norm, "x, shape, weight, bias, eps",
            "The normalised input, the means, and 1 / the deviations."),
    SEVERAL("layer_norm_backward", layer_norm_backward,
            "grad, x, shape, mean, rstd, weight, bias, mask",
            "The gradients in input, weight and bias; None for those that `mask` leaves out."),
    SEVERAL("max_dim", max_dim, "a, dim, keepdim", "Largest elements and their positions."),
    SEVERAL("argmax", argmax, "a, dim, keepdim", "Positions of the largest elements."),
    SEVERAL("nll_loss", nll_loss, "x, target, weight, reduction, ignore_index",
            "The loss, and the sum of the weights that count."),
    SEVERAL("nll_loss_backward", nll_loss_backward,
            "grad, x, target, weight, reduction, ignore_index, total_weight",
            "The gradient of nll_loss."),
    SEVERAL("mse_loss", mse_loss, "a, b, reduction", "The mean or the sum of (a - b)^2."),
    SEVERAL("mse_loss_backward", mse_loss_backward, "grad, a, b, reduction",
            "The gradient of mse_loss in `a`."),
    SEVERAL("sum", sum, "a, dims, keepdim, dtype", "Sums over the first or the last dimensions."),
    SEVERAL("mean", mean, "a, dims, keepdim, dtype", "Means over the first or the last ones."),
    ALONE("relu", relu, "The larger of a and 0."),
    SEVERAL("tanh_backward", tanh_backward, "grad, output", "The gradient of tanh."),
    SEVERAL("sigmoid_backward", sigmoid_backward, "grad, output", "The gradient of sigmoid."),
    {"use_thread_count", use_thread_count, METH_O,
     "use_thread_count($module, count, /)\n--\n\n"
     "Have large calls ask how many threads they may use."},
    SEVERAL("cumsum", cumsum, "a, dim, dtype", "Sums of each element and those before it."),
    ALONE("exp", exponential, "e to the power of a"),
    ALONE("log", logarithm, "The natural logarithm."),
    SEVERAL("clamp", clamp, "a, low, high", "Elements between two numbers, or None."),
    SEVERAL("index_select", index_select, "a, dim, index", "What indices name in a dimension."),
    SEVERAL("embedding", embedding, "weight, indices", "The rows that indices name."),
    ALONE("sigmoid", sigmoid, "1 / (1 + exp(-a))"),
    ALONE("tanh", tangent, "The hyperbolic tangent."),
    ALONE("erf", error_function, "The error function."),
    ALONE("silu", silu, "a * sigmoid(a)"),
    SEVERAL("silu_backward", silu_backward, "grad, a", "The gradient of silu."),
    SEVERAL("gelu", gelu, "a, approximate", "a times the normal distribution function of a."),
    SEVERAL("gelu_backward", gelu_backward, "grad, a, approximate", "The gradient of gelu."),
    SEVERAL("threshold_backward", threshold_backward, "grad, a, limit",
            "The gradient, with zeros where a <= limit."),
    SEVERAL("update_sgd", update_sgd,
            "parameters, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize",
            "One step of gradient descent, in place."),
    SEVERAL("update_adam", update_adam,
            "parameters, grads, means, squares, largest, rates, epsilons, beta1, beta2, decay, "
            "weight_decay, maximize",
            "One step of Adam, in place."),
    SEVERAL("batch_norm", batch_norm,
            "x, weight, bias, running_mean, running_var, training, momentum, eps",
            "The normalised input, and when training the means and 1 / the deviations."),
    SEVERAL("batch_norm_backward", batch_norm_backward,
            "grad, x, weight, running_mean, running_var, mean, rstd, training, eps, mask",
            "The gradients in input, weight and bias; None for those that `mask` leaves out."),
    SEVERAL("max_pool", max_pool, "x, kernel, stride, padding, dilation, out",
            "The largest elements of windows, and their positions."),
    SEVERAL("max_pool1d", max_pool1d, "x, kernel, stride, padding, dilation, out",
            "The largest elements of windows over the last dimension."),
    SEVERAL("max_pool_backward", max_pool_backward,
            "grad, shape, positions, kernel, stride, padding, dilation, out",
            "The gradient of max_pool."),
    SEVERAL("avg_pool", avg_pool,
            "x, kernel, stride, padding, dilation, out, count_include_pad, divisor",
            "The means of windows."),
    SEVERAL("avg_pool_backward", avg_pool_backward,
            "grad, shape, kernel, stride, padding, dilation, out, count_include_pad, divisor",
            "The gradient of avg_pool."),
    SEVERAL("cat", cat, "arrays, dim", "Arrays joined along a dimension."),
    SEVERAL("stack", stack, "arrays, dim", "Arrays joined along a new dimension."),
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    import_array1(-1);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define JOINED(a, b) a##b
#define INIT(name) JOINED(PyInit_, name)

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "plugrad_native." TEXT(MODULE),
    .m_doc = "Kernels on contiguous float32 and float64 arrays.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC INIT(MODULE)(void);

PyMODINIT_FUNC INIT(MODULE)(void)
{
    return PyModuleDef_Init(&definition);
}
