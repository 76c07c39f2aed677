/* All steps of a recurrent layer in one direction, and their gradients. Sequences of a batch that
   have different lengths are left to the next kernel. NumPy's BLAS computes the products of many
   rows. For few, it would take longer to lay out the weight anew at each step than to multiply. */

#ifndef PLUGRAD_KERNELS_OF_RECURRENCE_H
#define PLUGRAD_KERNELS_OF_RECURRENCE_H

#include "kernels_of_views.h"
#include "kinds.h"

typedef void (*StepLoop)(const RecurrentStep *, npy_intp, npy_intp);

/* A layer, and a step of it. */
typedef struct {
    npy_intp times;
    int reverse, kinds; /* kinds of gates */
    StepLoop loop;
    RecurrentStep step;
} Layer;

static void do_step(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Layer *layer = given;
    layer->loop(&layer->step, from, to);
}

static void run_step(const Layer *layer)
{
    npy_intp elements = layer->step.rows * layer->step.width * layer->kinds;
    npy_intp part = PART / (layer->step.width * layer->kinds) + 1;
    SHARING(elements, SHARED, do_step, layer, layer->step.rows, part);
}

static int is_sized(PyArrayObject *a, npy_intp rows, npy_intp columns)
{
    return a != NULL && PyArray_NDIM(a) == 2 && PyArray_DIM(a, 0) == rows &&
           PyArray_DIM(a, 1) == columns;
}

/* What the arguments that all four functions have say of a layer; 0 if it is not served. */
static int layer_from(PyArrayObject *hx, PyArrayObject *w_hh, PyObject *sizes, PyObject *reverse,
                      Layer *layer)
{
    if (hx == NULL || PyArray_NDIM(hx) != 2 || PyArray_SIZE(hx) == 0 || !PyBool_Check(reverse) ||
        !(PyList_Check(sizes) || PyTuple_Check(sizes))) {
        return 0;
    }
    layer->step.rows = PyArray_DIM(hx, 0);
    layer->step.width = PyArray_DIM(hx, 1);
    layer->reverse = reverse == Py_True;
    layer->times = PySequence_Fast_GET_SIZE(sizes);
    for (npy_intp i = 0; i < layer->times; i++) {
        if (whole_from(PySequence_Fast_GET_ITEM(sizes, i)) != layer->step.rows) {
            return 0;
        }
    }
    return layer->times > 0 &&
           is_sized(w_hh, layer->kinds * layer->step.width, layer->step.width);
}

static void *row_data(PyArrayObject *a, const Layer *layer, npy_intp time, npy_intp planes)
{
    return (char *)DATA(a) + time * planes * layer->step.rows * PyArray_STRIDE(a, 0);
}

/* The n-th step's time. */
static npy_intp time_of(const Layer *layer, npy_intp n)
{
    return layer->reverse ? layer->times - 1 - n : n;
}

/* Rows of a batch up to which the weight is laid out once for all steps, and the multiplications of a
   step up to which that is so although BLAS may use several threads. */
#define FEW_ROWS 48
#define FEW_OF_A_STEP (1 << 21)

/* The weight of a layer as its steps multiply by it; `panels` is NULL if BLAS does. */
typedef struct {
    PyArrayObject *matrix, *panels;
} Weight;

/* The weight, transposed for the steps forward; whether there was memory for it. */
static int weight_from(PyArrayObject *w_hh, int turned, const Layer *layer, Weight *made)
{
    made->panels = NULL;
    made->matrix = turned ? (PyArrayObject *)PyArray_Transpose(w_hh, NULL)
                          : (PyArrayObject *)Py_NewRef(w_hh);
    if (made->matrix == NULL) {
        return 0;
    }
    npy_intp products = layer->step.rows * PyArray_SIZE(w_hh);
    if (layer->step.rows > FEW_ROWS ||
        (products > FEW_OF_A_STEP && threads_for(products, SHARED) > 1)) {
        return 1;
    }
    npy_intp inner = PyArray_DIM(made->matrix, 0), columns = PyArray_DIM(made->matrix, 1);
    npy_intp size = (npy_intp)PyArray_ITEMSIZE(w_hh), most = (columns + 15) / 16 * 16 * inner;
    made->panels = new_array(1, &most, PyArray_TYPE(w_hh));
    if (made->panels == NULL) {
        return 0;
    }
    OF_TYPE(w_hh, to_panels)(DATA(made->matrix), PyArray_STRIDE(made->matrix, 0) / size,
                             PyArray_STRIDE(made->matrix, 1) / size, inner, columns,
                             DATA(made->panels));
    return 1;
}

static void drop_weight(Weight *weight)
{
    Py_XDECREF(weight->matrix);
    Py_XDECREF(weight->panels);
}

/* out = the rows of a step in `a` @ the weight; whether that worked. */
static int multiply(PyArrayObject *a, npy_intp row, const Weight *weight, PyArrayObject *out)
{
    npy_intp rows = PyArray_DIM(out, 0), inner = PyArray_DIM(a, 1);
    if (weight->panels != NULL) {
        const char *first = (char *)DATA(a) + row * PyArray_STRIDE(a, 0);
        npy_intp columns = PyArray_DIM(out, 1);
        RELEASING_LOCK(rows * inner * columns,
                       OF_TYPE(a, multiply_panels)(first, rows, inner, DATA(weight->panels),
                                                   columns, DATA(out)));
        return 1;
    }
    Layout view = layout_of(a);
    view.shape[0] = rows;
    PyObject *given = view_of(a, &view, row * PyArray_STRIDE(a, 0));
    PyObject *found =
        given == NULL ? NULL : PyArray_MatrixProduct2(given, (PyObject *)weight->matrix, out);
    Py_XDECREF(given);
    Py_XDECREF(found);
    return found != NULL;
}

/* The rows of a step, or one of its planes, as an array of its own. */
static PyObject *copy_of_step(const void *data, const Layer *layer, int type)
{
    npy_intp shape[] = {layer->step.rows, layer->step.width};
    PyArrayObject *made = new_array(2, shape, type);
    if (made != NULL) {
        memcpy(DATA(made), data, (size_t)PyArray_NBYTES(made));
    }
    return (PyObject *)made;
}

/* The gradient of a last state as an array to write to: zeros for None, NULL if not served. */
static PyArrayObject *start_of(PyObject *given, PyArrayObject *like)
{
    if (given == Py_None) {
        return new_zeros(2, PyArray_DIMS(like), PyArray_TYPE(like));
    }
    PyArrayObject *grad = gradient_like(given, like);
    PyArrayObject *made = grad == NULL ? NULL : (PyArrayObject *)PyArray_NewCopy(grad, NPY_CORDER);
    Py_XDECREF(grad);
    return made;
}

/* grads.T @ the states before each step: the gradient of the weight */
static PyObject *weight_gradient(PyArrayObject *grads, PyArrayObject *hx, PyArrayObject *output,
                                 const Layer *layer)
{
    size_t all = (size_t)PyArray_NBYTES(output), one = (size_t)PyArray_NBYTES(hx);
    PyArrayObject *states = new_like(output);
    PyObject *turned = PyArray_Transpose(grads, NULL);
    PyObject *found = NULL;
    if (states != NULL && turned != NULL) {
        char *data = DATA(states);
        memcpy(data + (layer->reverse ? all - one : 0), DATA(hx), one);
        memcpy(data + (layer->reverse ? 0 : one),
               (char *)DATA(output) + (layer->reverse ? one : 0), all - one);
        found = PyArray_MatrixProduct2(turned, (PyObject *)states, NULL);
    }
    Py_XDECREF(states);
    Py_XDECREF(turned);
    return found;
}

/* The steps of a layer. `before` of the first one is `first`; of the others it is what the step
   before left at `states`, of which there are `planes` planes a step. Results in `output` and
   `workspace`, which has `kept` planes. */
static int run_forward(Layer *layer, PyArrayObject *gates, PyArrayObject *hx, PyArrayObject *w_hh,
                       PyArrayObject *bias, const void *first, int kept, int of_cell,
                       PyArrayObject *output, PyArrayObject *workspace)
{
    npy_intp shape[] = {layer->step.rows, layer->kinds * layer->step.width};
    PyArrayObject *product = new_array(2, shape, PyArray_TYPE(gates));
    PyArrayObject *hidden = hx;
    Weight weight = {NULL, NULL};
    npy_intp row = 0;
    int done = product != NULL && weight_from(w_hh, 1, layer, &weight);
    layer->step.before = first;
    for (npy_intp n = 0; done && n < layer->times; n++) {
        npy_intp time = time_of(layer, n);
        done = multiply(hidden, row, &weight, product);
        if (done && bias != NULL) {
            OF_TYPE(gates, add_row)(DATA(product), DATA(bias), shape[0], shape[1]);
        }
        if (done) {
            layer->step.product = DATA(product);
            layer->step.gates = row_data(gates, layer, time, 1);
            layer->step.planes = row_data(workspace, layer, time, kept);
            layer->step.out = row_data(output, layer, time, 1);
            run_step(layer);
            layer->step.before = of_cell ? (char *)layer->step.planes + 5 * PyArray_NBYTES(hx)
                                         : layer->step.out;
            hidden = output;
            row = time * layer->step.rows;
        }
    }
    Py_XDECREF(product);
    drop_weight(&weight);
    return done;
}

/* gates, hx, cx, w_hh, sizes, reverse */
static PyObject *lstm_layer(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *gates = count == 6 ? served(args[0]) : NULL;
    if (gates == NULL) {
        return declined();
    }
    PyArrayObject *hx = served_like(args[1], gates), *cx = served_like(args[2], gates);
    PyArrayObject *w_hh = served_like(args[3], gates);
    int type = PyArray_TYPE(gates);
    Layer layer = {.kinds = 4, .loop = OF_TYPE(gates, lstm_forward)};
    if (!layer_from(hx, w_hh, args[4], args[5], &layer) || cx == NULL ||
        !PyArray_SAMESHAPE(cx, hx) ||
        !is_sized(gates, layer.times * layer.step.rows, 4 * layer.step.width)) {
        return declined();
    }
    npy_intp rows = layer.times * layer.step.rows, shape[] = {rows, layer.step.width};
    npy_intp kept[] = {6 * rows, layer.step.width};
    PyArrayObject *output = new_array(2, shape, type), *workspace = new_array(2, kept, type);
    PyObject *parts[] = {(PyObject *)output, NULL, NULL, (PyObject *)workspace};
    if (output != NULL && workspace != NULL &&
        run_forward(&layer, gates, hx, w_hh, NULL, DATA(cx), 6, 1, output, workspace)) {
        parts[1] = copy_of_step(layer.step.out, &layer, type);
        parts[2] = copy_of_step(layer.step.before, &layer, type);
    }
    return results(4, parts);
}

/* gates, hx, w_hh, b_hh, sizes, reverse */
static PyObject *gru_layer(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *gates = count == 6 ? served(args[0]) : NULL;
    if (gates == NULL) {
        return declined();
    }
    PyArrayObject *hx = served_like(args[1], gates), *w_hh = served_like(args[2], gates), *bias;
    int type = PyArray_TYPE(gates);
    Layer layer = {.kinds = 3, .loop = OF_TYPE(gates, gru_forward)};
    if (!layer_from(hx, w_hh, args[4], args[5], &layer) ||
        !optional_flat(args[3], gates, 3 * layer.step.width, &bias) ||
        !is_sized(gates, layer.times * layer.step.rows, 3 * layer.step.width)) {
        return declined();
    }
    npy_intp rows = layer.times * layer.step.rows, shape[] = {rows, layer.step.width};
    npy_intp kept[] = {4 * rows, layer.step.width};
    PyArrayObject *output = new_array(2, shape, type), *workspace = new_array(2, kept, type);
    PyObject *parts[] = {(PyObject *)output, NULL, (PyObject *)workspace};
    if (output != NULL && workspace != NULL &&
        run_forward(&layer, gates, hx, w_hh, bias, DATA(hx), 4, 0, output, workspace)) {
        parts[1] = copy_of_step(layer.step.out, &layer, type);
    }
    return results(3, parts);
}

/* Where the state before the n-th step of backward is: what the step before it in time left at
   `data`, which has `planes` planes a step. */
static const void *state_before(const Layer *layer, npy_intp n, const void *data, npy_intp planes,
                                const void *first, PyArrayObject *hx)
{
    if (n == layer->times - 1) {
        return first;
    }
    return (const char *)data + time_of(layer, layer->times - 2 - n) * planes * PyArray_NBYTES(hx);
}

/* grad_output, grad_hy, grad_cy, hx, cx, w_hh, output, workspace, sizes, reverse, wanted */
static PyObject *lstm_layer_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *output = count == 11 ? served(args[6]) : NULL;
    if (output == NULL) {
        return declined();
    }
    PyArrayObject *hx = served_like(args[3], output), *cx = served_like(args[4], output);
    PyArrayObject *w_hh = served_like(args[5], output), *kept = served_like(args[7], output);
    Layer layer = {.kinds = 4, .loop = OF_TYPE(output, lstm_backward)};
    if (!layer_from(hx, w_hh, args[8], args[9], &layer) || cx == NULL ||
        !PyArray_SAMESHAPE(cx, hx) || !PyTuple_Check(args[10]) || PyTuple_GET_SIZE(args[10]) != 4) {
        return declined();
    }
    npy_intp rows = layer.times * layer.step.rows, width = layer.step.width;
    npy_intp shape[] = {rows, 4 * width};
    if (!is_sized(output, rows, width) || !is_sized(kept, 6 * rows, width)) {
        return declined();
    }
    PyArrayObject *grad = args[0] == Py_None ? NULL : gradient_like(args[0], output);
    PyArrayObject *to_hidden = start_of(args[1], hx), *to_cell = start_of(args[2], hx);
    PyArrayObject *to_gates = NULL;
    PyObject *to_weight = NULL;
    Weight weight = {NULL, NULL};
    int done = (grad != NULL || args[0] == Py_None) && to_hidden != NULL && to_cell != NULL;
    if (done) {
        to_gates = new_array(2, shape, PyArray_TYPE(output));
        done = to_gates != NULL && weight_from(w_hh, 0, &layer, &weight);
    }
    const char *cells = (const char *)DATA(kept) + 5 * PyArray_NBYTES(hx);
    for (npy_intp n = 0; done && n < layer.times; n++) {
        npy_intp time = time_of(&layer, layer.times - 1 - n);
        layer.step.planes = row_data(kept, &layer, time, 6);
        layer.step.before = state_before(&layer, n, cells, 6, DATA(cx), hx);
        layer.step.grad = grad == NULL ? NULL : row_data(grad, &layer, time, 1);
        layer.step.to_hidden = DATA(to_hidden);
        layer.step.to_cell = DATA(to_cell);
        layer.step.out = row_data(to_gates, &layer, time, 1);
        run_step(&layer);
        done = multiply(to_gates, time * layer.step.rows, &weight, to_hidden);
    }
    drop_weight(&weight);
    if (done && PyTuple_GET_ITEM(args[10], 3) == Py_True) {
        to_weight = weight_gradient(to_gates, hx, output, &layer);
        done = to_weight != NULL;
    } else if (done) {
        to_weight = Py_NewRef(Py_None);
    }
    Py_XDECREF(grad);
    if (!done) {
        Py_XDECREF(to_hidden);
        Py_XDECREF(to_cell);
        Py_XDECREF(to_gates);
        return failed();
    }
    PyObject *parts[] = {(PyObject *)to_gates, (PyObject *)to_hidden, (PyObject *)to_cell,
                         to_weight};
    return results(4, parts);
}

/* grad_output, grad_hy, hx, w_hh, output, workspace, sizes, reverse, wanted */
static PyObject *gru_layer_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *output = count == 9 ? served(args[4]) : NULL;
    if (output == NULL) {
        return declined();
    }
    PyArrayObject *hx = served_like(args[2], output), *w_hh = served_like(args[3], output);
    PyArrayObject *kept = served_like(args[5], output);
    int type = PyArray_TYPE(output);
    Layer layer = {.kinds = 3, .loop = OF_TYPE(output, gru_backward)};
    if (!layer_from(hx, w_hh, args[6], args[7], &layer) || !PyTuple_Check(args[8]) ||
        PyTuple_GET_SIZE(args[8]) != 4) {
        return declined();
    }
    npy_intp rows = layer.times * layer.step.rows, width = layer.step.width;
    npy_intp shape[] = {rows, 3 * width};
    if (!is_sized(output, rows, width) || !is_sized(kept, 4 * rows, width)) {
        return declined();
    }
    PyArrayObject *grad = args[0] == Py_None ? NULL : gradient_like(args[0], output);
    PyArrayObject *to_hidden = start_of(args[1], hx);
    PyArrayObject *to_gates = NULL, *to_product = NULL, *onward = NULL;
    PyObject *to_weight = NULL, *to_bias = NULL;
    Weight weight = {NULL, NULL};
    int done = (grad != NULL || args[0] == Py_None) && to_hidden != NULL;
    if (done) {
        to_gates = new_array(2, shape, type);
        to_product = new_array(2, shape, type);
        onward = new_like(hx);
        done = to_gates != NULL && to_product != NULL && onward != NULL &&
               weight_from(w_hh, 0, &layer, &weight);
    }
    for (npy_intp n = 0; done && n < layer.times; n++) {
        npy_intp time = time_of(&layer, layer.times - 1 - n);
        layer.step.planes = row_data(kept, &layer, time, 4);
        layer.step.before = state_before(&layer, n, DATA(output), 1, DATA(hx), hx);
        layer.step.grad = grad == NULL ? NULL : row_data(grad, &layer, time, 1);
        layer.step.to_hidden = DATA(to_hidden);
        layer.step.out = row_data(to_gates, &layer, time, 1);
        layer.step.to_product = row_data(to_product, &layer, time, 1);
        run_step(&layer);
        done = multiply(to_product, time * layer.step.rows, &weight, onward);
        if (done) {
            OF_TYPE(hx, add_row)(DATA(to_hidden), DATA(onward), 1, PyArray_SIZE(hx));
        }
    }
    drop_weight(&weight);
    if (done) {
        to_weight = PyTuple_GET_ITEM(args[8], 2) == Py_True
                        ? weight_gradient(to_product, hx, output, &layer)
                        : Py_NewRef(Py_None);
        to_bias = PyTuple_GET_ITEM(args[8], 3) == Py_True ? PyArray_Sum(to_product, 0, type, NULL)
                                                          : Py_NewRef(Py_None);
    }
    Py_XDECREF(grad);
    Py_XDECREF(to_product);
    Py_XDECREF(onward);
    if (!done) {
        Py_XDECREF(to_hidden);
        Py_XDECREF(to_gates);
        return failed();
    }
    PyObject *parts[] = {(PyObject *)to_gates, (PyObject *)to_hidden, to_weight, to_bias};
    return results(4, parts);
}

#endif
