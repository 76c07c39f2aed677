/* One step of recurrent layers, for one dtype: what follows the matrix product, and its gradients.
   Gates of a row lie one kind after the other; planes, which are kept for backward, are (rows,
   width) each. */

/* Adds a row to each of `rows` rows. */
static void F(add_row)(void *made, const void *given, npy_intp rows, npy_intp n)
{
    const REAL *restrict row = given;
    for (npy_intp r = 0; r < rows; r++) {
        REAL *restrict out = (REAL *)made + r * n;
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] += row[i];
        }
    }
}

/* out = sigmoid(a + b), and the same of tanh */
static inline void F(sigmoid_of_sum)(const REAL *restrict a, const REAL *restrict b,
                                     REAL *restrict out, npy_intp n)
{
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        out[i] = F(sigmoid_of)(a[i] + b[i]);
    }
}

static inline void F(tanh_of_sum)(const REAL *restrict a, const REAL *restrict b,
                                  REAL *restrict out, npy_intp n)
{
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        out[i] = TANH(a[i] + b[i]);
    }
}

/* Planes: the gates (enter, forget, new, leave), tanh of the cell, the cell. */
static void F(lstm_forward)(const RecurrentStep *w, npy_intp from, npy_intp to)
{
    npy_intp n = w->width, plane = w->rows * n;
    for (npy_intp r = from; r < to; r++) {
        const REAL *product = (const REAL *)w->product + 4 * n * r;
        const REAL *gates = (const REAL *)w->gates + 4 * n * r;
        const REAL *restrict before = (const REAL *)w->before + n * r;
        REAL *restrict enter = (REAL *)w->planes + n * r;
        REAL *restrict forget = enter + plane, *restrict new = forget + plane;
        REAL *restrict leave = new + plane, *restrict bent = leave + plane;
        REAL *restrict cell = bent + plane, *restrict out = (REAL *)w->out + n * r;
        F(sigmoid_of_sum)(product, gates, enter, n);
        F(sigmoid_of_sum)(product + n, gates + n, forget, n);
        F(tanh_of_sum)(product + 2 * n, gates + 2 * n, new, n);
        F(sigmoid_of_sum)(product + 3 * n, gates + 3 * n, leave, n);
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            REAL made = forget[i] * before[i] + enter[i] * new[i];
            REAL bend = TANH(made);
            cell[i] = made;
            bent[i] = bend;
            out[i] = leave[i] * bend;
        }
    }
}

/* Adds `grad` to the gradient of the hidden state, fills that of the gates, and makes that of the
   cell the one before. */
static void F(lstm_backward)(const RecurrentStep *w, npy_intp from, npy_intp to)
{
    npy_intp n = w->width, plane = w->rows * n;
    for (npy_intp r = from; r < to; r++) {
        const REAL *restrict enter = (const REAL *)w->planes + n * r;
        const REAL *restrict forget = enter + plane, *restrict new = forget + plane;
        const REAL *restrict leave = new + plane, *restrict bent = leave + plane;
        const REAL *restrict before = (const REAL *)w->before + n * r;
        const REAL *restrict grad = (const REAL *)w->grad + n * r;
        const REAL *restrict to_hidden = (const REAL *)w->to_hidden + n * r;
        REAL *restrict to_cell = (REAL *)w->to_cell + n * r;
        REAL *restrict to_enter = (REAL *)w->out + 4 * n * r;
        REAL *restrict to_forget = to_enter + n, *restrict to_new = to_forget + n;
        REAL *restrict to_leave = to_new + n;
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            REAL hidden = w->grad == NULL ? to_hidden[i] : to_hidden[i] + grad[i];
            REAL cell = to_cell[i] + hidden * leave[i] * (1 - bent[i] * bent[i]);
            to_enter[i] = cell * new[i] * (enter[i] * (1 - enter[i]));
            to_forget[i] = cell * before[i] * (forget[i] * (1 - forget[i]));
            to_new[i] = cell * enter[i] * (1 - new[i] * new[i]);
            to_leave[i] = hidden * bent[i] * (leave[i] * (1 - leave[i]));
            to_cell[i] = cell * forget[i];
        }
    }
}

/* Planes: reset, update, new, and what `reset` is multiplied by. The product has its bias. */
static void F(gru_forward)(const RecurrentStep *w, npy_intp from, npy_intp to)
{
    npy_intp n = w->width, plane = w->rows * n;
    for (npy_intp r = from; r < to; r++) {
        const REAL *product = (const REAL *)w->product + 3 * n * r;
        const REAL *gates = (const REAL *)w->gates + 3 * n * r;
        const REAL *restrict of_new = gates + 2 * n, *restrict given = product + 2 * n;
        const REAL *restrict before = (const REAL *)w->before + n * r;
        REAL *restrict reset = (REAL *)w->planes + n * r;
        REAL *restrict update = reset + plane, *restrict new = update + plane;
        REAL *restrict inner = new + plane, *restrict out = (REAL *)w->out + n * r;
        F(sigmoid_of_sum)(product, gates, reset, n);
        F(sigmoid_of_sum)(product + n, gates + n, update, n);
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            REAL made = TANH(of_new[i] + reset[i] * given[i]);
            inner[i] = given[i];
            new[i] = made;
            out[i] = made + update[i] * (before[i] - made);
        }
    }
}

/* Fills the gradients of the two sums, and makes that of the hidden state the one before as far as
   it does not go through the product. */
static void F(gru_backward)(const RecurrentStep *w, npy_intp from, npy_intp to)
{
    npy_intp n = w->width, plane = w->rows * n;
    for (npy_intp r = from; r < to; r++) {
        const REAL *restrict reset = (const REAL *)w->planes + n * r;
        const REAL *restrict update = reset + plane, *restrict new = update + plane;
        const REAL *restrict inner = new + plane;
        const REAL *restrict before = (const REAL *)w->before + n * r;
        const REAL *restrict grad = (const REAL *)w->grad + n * r;
        REAL *restrict to_hidden = (REAL *)w->to_hidden + n * r;
        REAL *restrict to_reset = (REAL *)w->out + 3 * n * r;
        REAL *restrict to_update = to_reset + n, *restrict to_new = to_update + n;
        REAL *restrict to_product = (REAL *)w->to_product + 3 * n * r;
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            REAL hidden = w->grad == NULL ? to_hidden[i] : to_hidden[i] + grad[i];
            REAL updated = hidden * (before[i] - new[i]) * (update[i] * (1 - update[i]));
            REAL made = hidden * (1 - update[i]) * (1 - new[i] * new[i]);
            REAL passed = made * inner[i] * (reset[i] * (1 - reset[i]));
            to_reset[i] = passed;
            to_update[i] = updated;
            to_new[i] = made;
            to_product[i] = passed;
            to_product[n + i] = updated;
            to_product[2 * n + i] = made * reset[i];
            to_hidden[i] = hidden * update[i];
        }
    }
}
