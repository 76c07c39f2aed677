/* What is computed row by row, for one dtype: softmax, layer_norm, the largest element, nll_loss.
   EXP is the dtype's function; the rest is as in sums.h. */

/* A row's largest number; a nan counts for nothing. */
static REAL F(largest)(const REAL *restrict x, npy_intp n)
{
    REAL top = -(REAL)INFINITY;
#pragma omp simd reduction(max : top)
    for (npy_intp i = 0; i < n; i++) {
        top = x[i] > top ? x[i] : top;
    }
    return top;
}

/* exp(x - top), and the sum of that. A row with nan has the sum nan, as one with inf. */
static double F(exponentials)(const REAL *restrict x, REAL *restrict out, npy_intp n, REAL top)
{
    double total = 0;
    for (npy_intp first = 0; first < n; first += BLOCK) {
        npy_intp end = n - first < BLOCK ? n : first + BLOCK;
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (npy_intp i = first; i < end; i++) {
            REAL e = EXP(x[i] - top);
            out[i] = e;
            part += e;
        }
        total += part;
    }
    return total;
}

/* Subtracts each row's largest number. */
static inline void F(shift)(const REAL *restrict x, REAL *restrict out, npy_intp rows, npy_intp n)
{
    for (npy_intp first = 0; first < rows * n; first += n) {
        REAL top = F(largest)(x + first, n);
#pragma omp simd
        for (npy_intp i = first; i < first + n; i++) {
            out[i] = x[i] - top;
        }
    }
}

static inline REAL F(short_sum)(const REAL *restrict x, npy_intp n)
{
    REAL total = 0;
#pragma omp simd reduction(+ : total)
    for (npy_intp i = 0; i < n; i++) {
        total += x[i];
    }
    return total;
}

/* Rows that together have a block of elements: all exponentials come from one loop, since to begin
   one takes as long as a short row. */
static void F(softmax_of_short)(const REAL *restrict x, REAL *restrict out, npy_intp rows,
                                npy_intp n)
{
    F(shift)(x, out, rows, n);
#pragma omp simd
    for (npy_intp i = 0; i < rows * n; i++) {
        out[i] = EXP(out[i]);
    }
    for (npy_intp first = 0; first < rows * n; first += n) {
        REAL total = F(short_sum)(out + first, n);
#pragma omp simd
        for (npy_intp i = first; i < first + n; i++) {
            out[i] /= total;
        }
    }
}

static void F(log_softmax_of_short)(const REAL *restrict x, REAL *restrict out, npy_intp rows,
                                    npy_intp n)
{
    REAL exponentials[BLOCK];
    F(shift)(x, out, rows, n);
#pragma omp simd
    for (npy_intp i = 0; i < rows * n; i++) {
        exponentials[i] = EXP(out[i]);
    }
    for (npy_intp first = 0; first < rows * n; first += n) {
        REAL shift = (REAL)log((double)F(short_sum)(exponentials + first, n));
#pragma omp simd
        for (npy_intp i = first; i < first + n; i++) {
            out[i] -= shift;
        }
    }
}

static void F(softmax)(const void *given, void *made, npy_intp rows, npy_intp n)
{
    npy_intp step = n <= BLOCK ? BLOCK / n : 1;
    for (npy_intp r = 0; r < rows; r += step) {
        const REAL *restrict x = (const REAL *)given + r * n;
        REAL *restrict out = (REAL *)made + r * n;
        if (n <= BLOCK) {
            F(softmax_of_short)(x, out, rows - r < step ? rows - r : step, n);
            continue;
        }
        REAL total = (REAL)F(exponentials)(x, out, n, F(largest)(x, n));
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] /= total;
        }
    }
}

static void F(log_softmax)(const void *given, void *made, npy_intp rows, npy_intp n)
{
    npy_intp step = n <= BLOCK ? BLOCK / n : 1;
    for (npy_intp r = 0; r < rows; r += step) {
        const REAL *restrict x = (const REAL *)given + r * n;
        REAL *restrict out = (REAL *)made + r * n;
        if (n <= BLOCK) {
            F(log_softmax_of_short)(x, out, rows - r < step ? rows - r : step, n);
            continue;
        }
        REAL top = F(largest)(x, n);
        REAL shift = (REAL)log(F(exponentials)(x, out, n, top));
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] = (x[i] - top) - shift;
        }
    }
}

static void F(softmax_backward)(const void *grads, const void *results, void *made, npy_intp rows,
                                npy_intp n)
{
    for (npy_intp r = 0; r < rows; r++) {
        const REAL *restrict grad = (const REAL *)grads + r * n;
        const REAL *restrict y = (const REAL *)results + r * n;
        REAL *restrict out = (REAL *)made + r * n;
        REAL total = (REAL)F(sum_products)(grad, y, n);
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] = grad[i] * y[i] - y[i] * total;
        }
    }
}

static void F(log_softmax_backward)(const void *grads, const void *results, void *made,
                                    npy_intp rows, npy_intp n)
{
    for (npy_intp r = 0; r < rows; r++) {
        const REAL *restrict grad = (const REAL *)grads + r * n;
        const REAL *restrict y = (const REAL *)results + r * n;
        REAL *restrict out = (REAL *)made + r * n;
        REAL total = (REAL)F(sum)(grad, n);
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] = grad[i] - EXP(y[i]) * total;
        }
    }
}

/* The normalised rows, their means, and 1 / their deviations; weight and bias may be NULL. Without
   means, nothing is subtracted, as in rms_norm. */
static void F(layer_norm)(const void *given, const void *weights, const void *biases, void *made,
                          void *means, void *rstds, npy_intp rows, npy_intp n, double eps)
{
    for (npy_intp r = 0; r < rows; r++) {
        const REAL *restrict x = (const REAL *)given + r * n;
        const REAL *restrict weight = weights;
        const REAL *restrict bias = biases;
        REAL *restrict out = (REAL *)made + r * n;
        REAL mean = means == NULL ? (REAL)0 : (REAL)(F(sum)(x, n) / (double)n);
        double variance = F(sum_squares)(x, mean, n) / (double)n;
        REAL rstd = (REAL)(1.0 / sqrt(variance + eps));
        if (means != NULL) {
            ((REAL *)means)[r] = mean;
        }
        ((REAL *)rstds)[r] = rstd;
        if (weight != NULL && bias != NULL) {
#pragma omp simd
            for (npy_intp i = 0; i < n; i++) {
                out[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
            }
            continue;
        }
        if (weight != NULL) {
#pragma omp simd
            for (npy_intp i = 0; i < n; i++) {
                out[i] = (x[i] - mean) * rstd * weight[i];
            }
            continue;
        }
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] = (x[i] - mean) * rstd;
        }
        for (npy_intp i = 0; bias != NULL && i < n; i++) {
            out[i] += bias[i];
        }
    }
}

/* The gradient in one row of the input of layer_norm; `weighted` and `centered` are known where it
   is called, so that loops have no branches. */
static inline void F(layer_norm_row_to_input)(const REAL *restrict grad, const REAL *restrict x,
                                              const REAL *restrict weight, REAL *restrict out,
                                              REAL mean, REAL rstd, npy_intp n, int weighted,
                                              int centered)
{
    double shift = 0, along = 0;
    for (npy_intp first = 0; first < n; first += BLOCK) {
        npy_intp end = n - first < BLOCK ? n : first + BLOCK;
        REAL a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
        for (npy_intp i = first; i < end; i++) {
            REAL g = weighted ? grad[i] * weight[i] : grad[i];
            a += g;
            b += g * (x[i] - mean);
        }
        shift += a;
        along += b;
    }
    REAL mean_shift = centered ? (REAL)(shift / (double)n) : (REAL)0;
    REAL slope = (REAL)(along / (double)n) * rstd * rstd;
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        REAL g = weighted ? grad[i] * weight[i] : grad[i];
        out[i] = (g - mean_shift - (x[i] - mean) * slope) * rstd;
    }
}

/* The gradient in the input of layer_norm. */
static void F(layer_norm_to_input)(const void *grads, const void *given, const void *means,
                                   const void *rstds, const void *weights, void *made,
                                   npy_intp rows, npy_intp n)
{
    const REAL *mean = means, *rstd = rstds, *weight = weights;
    for (npy_intp r = 0; r < rows; r++) {
        const REAL *grad = (const REAL *)grads + r * n, *x = (const REAL *)given + r * n;
        REAL *out = (REAL *)made + r * n;
        if (mean == NULL && weight != NULL) {
            F(layer_norm_row_to_input)(grad, x, weight, out, (REAL)0, rstd[r], n, 1, 0);
        } else if (mean == NULL) {
            F(layer_norm_row_to_input)(grad, x, NULL, out, (REAL)0, rstd[r], n, 0, 0);
        } else if (weight != NULL) {
            F(layer_norm_row_to_input)(grad, x, weight, out, mean[r], rstd[r], n, 1, 1);
        } else {
            F(layer_norm_row_to_input)(grad, x, NULL, out, mean[r], rstd[r], n, 0, 1);
        }
    }
}

/* The gradient in the weight of layer_norm, of columns from one to before another one. */
static void F(layer_norm_to_weight)(const void *grads, const void *given, const void *means,
                                    const void *rstds, void *made, npy_intp rows, npy_intp n,
                                    npy_intp from, npy_intp to)
{
    REAL *out = made;
    for (npy_intp first = from; first < to; first += COLUMNS) {
        const REAL *grad = (const REAL *)grads + first;
        const REAL *x = (const REAL *)given + first;
        npy_intp width = to - first < COLUMNS ? to - first : COLUMNS;
        double total[COLUMNS] = {0};
        for (npy_intp r = 0; r < rows; r += ROWS) {
            REAL part[COLUMNS] = {0};
            npy_intp end = rows - r < ROWS ? rows : r + ROWS;
            for (npy_intp k = r; k < end; k++) {
                REAL mean = means == NULL ? (REAL)0 : ((const REAL *)means)[k];
                REAL rstd = ((const REAL *)rstds)[k];
#pragma omp simd
                for (npy_intp i = 0; i < width; i++) {
                    part[i] += grad[k * n + i] * ((x[k * n + i] - mean) * rstd);
                }
            }
            for (npy_intp i = 0; i < width; i++) {
                total[i] += part[i];
            }
        }
        for (npy_intp i = 0; i < width; i++) {
            out[first + i] = (REAL)total[i];
        }
    }
}

/* The first of a row's largest elements; nan is larger than any number. */
static npy_intp F(first_largest)(const REAL *restrict x, npy_intp n)
{
    REAL top = F(largest)(x, n);
    int nans = 0;
#pragma omp simd reduction(| : nans)
    for (npy_intp i = 0; i < n; i++) {
        nans |= x[i] != x[i];
    }
    npy_intp found = 0;
    while (nans ? x[found] == x[found] : x[found] != top) {
        found++;
    }
    return found;
}

/* Values, which may be NULL, and positions. */
static void F(max_rows)(const void *given, void *values, npy_int64 *positions, npy_intp rows,
                        npy_intp n)
{
    for (npy_intp r = 0; r < rows; r++) {
        const REAL *x = (const REAL *)given + r * n;
        npy_intp found = F(first_largest)(x, n);
        positions[r] = found;
        if (values != NULL) {
            ((REAL *)values)[r] = x[found];
        }
    }
}

/* Negative log likelihoods; their weights' sum is in `*total`. -1 if a target is no class. Losses
   may be NULL, of which the sum is in `*loss`. */
static int F(nll_loss)(const void *given, const npy_int64 *targets, const void *weights,
                       void *losses, npy_intp rows, npy_intp classes, npy_int64 ignored,
                       double *loss, double *total)
{
    const REAL *x = given;
    const REAL *weight = weights;
    for (npy_intp r = 0; r < rows; r++) {
        npy_int64 target = targets[r];
        REAL one = 0;
        if (target != ignored) {
            if (target < 0 || target >= classes) {
                return -1;
            }
            REAL factor = weight == NULL ? (REAL)1 : weight[target];
            one = -x[r * classes + target] * factor;
            *total += factor;
        }
        *loss += one;
        if (losses != NULL) {
            ((REAL *)losses)[r] = one;
        }
    }
    return 0;
}

/* Writes gradients into zeros; `step` is 0 if all rows have one. -1 if a target is no class. */
static int F(nll_loss_backward)(const void *grads, npy_intp step, const npy_int64 *targets,
                                const void *weights, void *made, npy_intp rows, npy_intp classes,
                                npy_int64 ignored, double divisor)
{
    const REAL *grad = grads;
    const REAL *weight = weights;
    for (npy_intp r = 0; r < rows; r++) {
        npy_int64 target = targets[r];
        if (target == ignored) {
            continue;
        }
        if (target < 0 || target >= classes) {
            return -1;
        }
        REAL share = -grad[r * step] / (REAL)divisor;
        ((REAL *)made)[r * classes + target] = weight == NULL ? share : share * weight[target];
    }
    return 0;
}
