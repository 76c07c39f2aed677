/* Kernels of plugrad on contiguous float32 and float64 arrays of NumPy, and views of any.

   Each function takes what the kernel of its operator in plugrad-cpu takes, and returns what that
   returns, or NotImplemented where it does not serve the arguments.

   MODULE is the name of the module: the file is compiled once for every processor of a kind, and
   once for those with certain instructions. */

#include "kernels_of_attention.h"
#include "kernels_of_bfloat16.h"
#include "kernels_of_chains.h"
#include "kernels_of_channels.h"
#include "kernels_of_convolutions.h"
#include "kernels_of_elements.h"
#include "kernels_of_groups.h"
#include "kernels_of_indices.h"
#include "kernels_of_joins.h"
#include "kernels_of_losses.h"
#include "kernels_of_pairs.h"
#include "kernels_of_products.h"
#include "kernels_of_recurrence.h"
#include "kernels_of_rows.h"
#include "kernels_of_steps.h"
#include "kernels_of_sums.h"
#include "kernels_of_views.h"
#include "kernels_of_windows.h"

#define SEVERAL(name, function, signature, what)                                                   \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))function, METH_FASTCALL,                                \
            name "($module, " signature ", /)\n--\n\n" what                                        \
    }
#define WITH_OUT(name, function, signature, what)                                                  \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS,                \
            name "($module, " signature ", /, *, out=None)\n--\n\n" what                           \
    }
#define ALONE(name, function, what) WITH_OUT(name, function, "a", what)
#define PAIR(name, what) WITH_OUT(#name, name##_pair, "a, b", what)
#define PAIR_INTO(name, what) SEVERAL(#name "_", name##_pair_into, "a, b", what)

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
    SEVERAL("rms_norm", rms_norm, "x, shape, weight, eps",
            "The input over the root of its mean square, and 1 / that root."),
    SEVERAL("rms_norm_backward", rms_norm_backward, "grad, x, shape, rstd, weight, mask",
            "The gradients in input and weight; None for those that `mask` leaves out."),
    SEVERAL("group_norm", group_norm, "x, weight, bias, samples, channels, size, groups, eps",
            "The normalised input, the means of groups, and 1 / their deviations."),
    SEVERAL("group_norm_backward", group_norm_backward,
            "grad, x, mean, rstd, weight, samples, channels, size, groups, mask",
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
    SEVERAL("gather", gather, "a, dim, index", "The elements that an index names along a dimension."),
    SEVERAL("scatter", scatter, "a, dim, index, source",
            "A copy with elements of the source where the index says."),
    SEVERAL("embedding", embedding, "weight, indices", "The rows that indices name."),
    ALONE("sigmoid", sigmoid, "1 / (1 + exp(-a))"),
    ALONE("tanh", tangent, "The hyperbolic tangent."),
    ALONE("erf", error_function, "The error function."),
    ALONE("neg", negative, "-a"),
    ALONE("abs", absolute, "The distance from 0."),
    ALONE("sqrt", square_root, "The square root."),
    WITH_OUT("pow", power, "a, exponent", "The powers 2, 3, 1/2 and -1."),
    ALONE("reciprocal", reciprocal, "1 / a"),
    ALONE("rsqrt", reciprocal_root, "1 / sqrt(a)"),
    ALONE("silu", silu, "a * sigmoid(a)"),
    SEVERAL("silu_backward", silu_backward, "grad, a", "The gradient of silu."),
    SEVERAL("gelu", gelu, "a, approximate", "a times the normal distribution function of a."),
    SEVERAL("gelu_backward", gelu_backward, "grad, a, approximate", "The gradient of gelu."),
    SEVERAL("threshold_backward", threshold_backward, "grad, a, limit",
            "The gradient, with zeros where a <= limit."),
    PAIR(add, "a + b, of which one may be a number or may broadcast to the other; so below."),
    PAIR(sub, "a - b"),
    PAIR(mul, "a * b"),
    PAIR(div, "a / b"),
    PAIR(maximum, "The larger of a and b, or nan."),
    PAIR(minimum, "The smaller of a and b, or nan."),
    PAIR(eq, "a == b"),
    PAIR(ne, "a != b"),
    PAIR(lt, "a < b"),
    PAIR(le, "a <= b"),
    PAIR(gt, "a > b"),
    PAIR(ge, "a >= b"),
    PAIR_INTO(add, "a += b"),
    PAIR_INTO(sub, "a -= b"),
    PAIR_INTO(mul, "a *= b"),
    PAIR_INTO(div, "a /= b"),
    SEVERAL("make_chain", make_chain, "inputs, links",
            "What run_chain computes: of each link its name, its sources and its register."),
    {"run_chain", (PyCFunction)(void (*)(void))run_chain, METH_FASTCALL | METH_KEYWORDS,
     "run_chain($module, chain, /, *inputs, out=None)\n--\n\n"
     "The last link of a chain, computed block by block."},
    SEVERAL("attention", attention, "query, key, value, mask, causal, scale",
            "softmax(scale * query @ key.T + mask) @ value, and the logarithms of the sums."),
    SEVERAL("attention_backward", attention_backward,
            "grad, query, key, value, mask, out, logsumexp, causal, scale, wanted",
            "The gradients of attention."),
    SEVERAL("lstm_layer", lstm_layer, "gates, hx, cx, w_hh, sizes, reverse",
            "All steps of long short-term memory."),
    SEVERAL("lstm_layer_backward", lstm_layer_backward,
            "grad_output, grad_hy, grad_cy, hx, cx, w_hh, output, workspace, sizes, reverse, "
            "wanted",
            "The gradients of lstm_layer."),
    SEVERAL("gru_layer", gru_layer, "gates, hx, w_hh, b_hh, sizes, reverse",
            "All steps of gated recurrent units."),
    SEVERAL("gru_layer_backward", gru_layer_backward,
            "grad_output, grad_hy, hx, w_hh, output, workspace, sizes, reverse, wanted",
            "The gradients of gru_layer."),
    SEVERAL("mm", mm, "a, b", "The product of two small matrices."),
    SEVERAL("bmm", bmm, "a, b", "The products of pairs of small matrices."),
    SEVERAL("matmul_nh", matmul_nh, "a, b", "The same with each b turned."),
    SEVERAL("matmul_hn", matmul_hn, "a, b", "The same with each a turned."),
    SEVERAL("addmm", addmm, "c, a, b, beta, alpha", "beta * c + alpha * a @ b"),
    SEVERAL("linear", linear, "x, weight, bias", "x @ weight.T + bias"),
    SEVERAL("linear_backward", linear_backward, "x, grad, weight, mask",
            "The gradients of linear in input, weight and bias; None for those that `mask` leaves "
            "out."),
    SEVERAL("view", view, "a, size", "A contiguous array in another shape."),
    SEVERAL("permute", permute, "a, dims", "Dimensions in another order."),
    SEVERAL("transpose", transpose, "a, dim0, dim1", "Two dimensions exchanged."),
    SEVERAL("t", t, "a", "A matrix with its dimensions exchanged."),
    SEVERAL("expand", expand, "a, size", "Dimensions of size 1 repeated."),
    SEVERAL("select", select_view, "a, dim, index", "One index of a dimension."),
    SEVERAL("unbind", unbind, "a, dim", "Every index of a dimension."),
    SEVERAL("split", split, "a, sizes, dim", "Parts of a dimension, one after the other."),
    SEVERAL("unsqueeze", unsqueeze, "a, dim", "With a dimension of size 1 more."),
    SEVERAL("slice", slice, "a, dim, start, end, step", "A part of a dimension."),
    SEVERAL("batch_norm", batch_norm,
            "x, weight, bias, running_mean, running_var, training, momentum, eps",
            "The normalised input, and when training the means and 1 / the deviations."),
    SEVERAL("batch_norm_backward", batch_norm_backward,
            "grad, x, weight, running_mean, running_var, mean, rstd, training, eps, mask",
            "The gradients in input, weight and bias; None for those that `mask` leaves out."),
    SEVERAL("convolution", convolution,
            "x, weight, bias, stride, padding, dilation, transposed, output_padding, groups",
            "Convolution of planes with filters of 3 x 3."),
    SEVERAL("convolution_backward", convolution_backward,
            "grad, x, weight, stride, padding, dilation, transposed, groups, mask",
            "The gradients in x, weight and bias; None for those that `mask` leaves out."),
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
    SEVERAL("update_sgd", update_sgd,
            "parameters, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize",
            "One step of gradient descent, in place."),
    SEVERAL("update_adam", update_adam,
            "parameters, grads, means, squares, largest, rates, epsilons, beta1, beta2, decay, "
            "weight_decay, maximize",
            "One step of Adam, in place."),
    SEVERAL("cast", cast, "a, dtype", "bfloat16 as float32, or the other way round."),
    SEVERAL("cat", cat, "arrays, dim", "Arrays joined along a dimension."),
    SEVERAL("stack", stack, "arrays, dim", "Arrays joined along a new dimension."),
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    import_array1(-1);
    return prepare_memory() ? 0 : -1;
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
