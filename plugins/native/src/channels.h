/* Batch normalisation and its gradients, for one dtype; read once for each by kinds.h.

   Arrays are (rows, channels, size). A channel's elements are runs of `size`, one in each row; with
   a size of 1 they are columns. */

#ifndef PLUGRAD_CHANNELS_H
#define PLUGRAD_CHANNELS_H

/* What is read and written; what may be NULL says so. */
typedef struct {
    const void *x, *grad; /* `grad`: NULL for the forward kernel */
    const void *weight, *bias; /* NULL without */
    const void *mean, *rstd;   /* of each channel, for gradients of training */
    void *running_mean, *running_var; /* NULL without */
    void *out; /* normalised, or the gradient in the input, which may be NULL */
    void *made[2]; /* means and 1 / deviations, or gradients in weight and bias; may be NULL */
    npy_intp rows, channels, size;
    double eps, momentum;
    int training;
} Channels;

#endif

/* What the normalisation by known statistics subtracts, and multiplies with. */
static inline void F(known_statistics)(const Channels *w, npy_intp c, REAL *mean, REAL *rstd)
{
    if (w->grad != NULL && w->training) {
        *mean = ((const REAL *)w->mean)[c];
        *rstd = ((const REAL *)w->rstd)[c];
        return;
    }
    *mean = ((const REAL *)w->running_mean)[c];
    *rstd = (REAL)(1.0 / sqrt((double)(REAL)(((const REAL *)w->running_var)[c] + (REAL)w->eps)));
}

/* Keeps the statistics of a channel, and moves the running ones; 1 / the deviation. */
static inline REAL F(new_statistics)(const Channels *w, npy_intp c, REAL mean, REAL variance)
{
    REAL count = (REAL)(w->rows * w->size), momentum = (REAL)w->momentum;
    REAL rstd = (REAL)(1.0 / sqrt((double)(REAL)(variance + (REAL)w->eps)));
    ((REAL *)w->made[0])[c] = mean;
    ((REAL *)w->made[1])[c] = rstd;
    if (w->running_mean != NULL) {
        REAL *running = (REAL *)w->running_mean + c;
        *running += momentum * (mean - *running);
    }
    if (w->running_var != NULL) {
        /* The unbiased variance; of a single value that is nan. */
        REAL *running = (REAL *)w->running_var + c;
        *running += momentum * (variance * (count / (count - 1)) - *running);
    }
    return rstd;
}

static inline REAL F(factor)(const Channels *w, npy_intp c, REAL rstd)
{
    return w->weight == NULL ? rstd : rstd * ((const REAL *)w->weight)[c];
}

static void F(normalize_runs)(const Channels *w, npy_intp c)
{
    npy_intp n = w->size, step = w->channels * n;
    const REAL *first = (const REAL *)w->x + c * n;
    REAL mean, rstd;
    if (w->training) {
        double count = (double)w->rows * (double)n;
        Total total = {0, 0}, squares = {0, 0};
        for (npy_intp r = 0; r < w->rows; r++) {
            add(&total, F(sum)(first + r * step, n));
        }
        mean = (REAL)(total_of(total) / count);
        for (npy_intp r = 0; r < w->rows; r++) {
            add(&squares, F(sum_squares)(first + r * step, mean, n));
        }
        rstd = F(new_statistics)(w, c, mean, (REAL)(total_of(squares) / count));
    } else {
        F(known_statistics)(w, c, &mean, &rstd);
    }
    REAL scale = F(factor)(w, c, rstd);
    REAL bias = w->bias == NULL ? (REAL)0 : ((const REAL *)w->bias)[c];
    for (npy_intp r = 0; r < w->rows; r++) {
        const REAL *restrict x = first + r * step;
        REAL *restrict out = (REAL *)w->out + c * n + r * step;
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] = (x[i] - mean) * scale + bias;
        }
    }
}

static void F(runs_to_input)(const Channels *w, npy_intp c)
{
    npy_intp n = w->size, step = w->channels * n;
    const REAL *grads = (const REAL *)w->grad + c * n;
    const REAL *inputs = (const REAL *)w->x + c * n;
    REAL mean, rstd;
    F(known_statistics)(w, c, &mean, &rstd);
    double shift = 0, along = 0;
    if (w->training || w->made[0] != NULL || w->made[1] != NULL) {
        for (npy_intp r = 0; r < w->rows; r++) {
            for (npy_intp from = 0; from < n; from += BLOCK) {
                npy_intp size = n - from < BLOCK ? n - from : BLOCK;
                const REAL *restrict grad = grads + r * step + from;
                const REAL *restrict x = inputs + r * step + from;
                REAL a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
                for (npy_intp i = 0; i < size; i++) {
                    a += grad[i];
                    b += grad[i] * (x[i] - mean);
                }
                shift += a;
                along += b;
            }
        }
    }
    if (w->made[0] != NULL) {
        ((REAL *)w->made[0])[c] = (REAL)(along * (double)rstd);
    }
    if (w->made[1] != NULL) {
        ((REAL *)w->made[1])[c] = (REAL)shift;
    }
    if (w->out == NULL) {
        return;
    }
    double count = (double)w->rows * (double)n;
    REAL scale = F(factor)(w, c, rstd);
    REAL mean_shift = (REAL)(shift / count), slope = (REAL)(along / count) * rstd * rstd;
    for (npy_intp r = 0; r < w->rows; r++) {
        const REAL *restrict grad = grads + r * step;
        const REAL *restrict x = inputs + r * step;
        REAL *restrict out = (REAL *)w->out + c * n + r * step;
        if (!w->training) {
#pragma omp simd
            for (npy_intp i = 0; i < n; i++) {
                out[i] = grad[i] * scale;
            }
            continue;
        }
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            out[i] = (grad[i] - mean_shift - (x[i] - mean) * slope) * scale;
        }
    }
}

/* Sums over the rows of a block of columns: of x, of (x - center)^2, or of grad * (x - center),
   whichever arguments there are for. */
static void F(sum_block_of_columns)(const REAL *x, const REAL *grad, const REAL *center,
                                    npy_intp rows, npy_intp step, npy_intp width, double *total)
{
    memset(total, 0, (size_t)width * sizeof(double));
    for (npy_intp first = 0; first < rows; first += ROWS) {
        REAL part[COLUMNS] = {0};
        npy_intp end = rows - first < ROWS ? rows : first + ROWS;
        for (npy_intp r = first; r < end; r++) {
            const REAL *restrict a = x + r * step;
            const REAL *restrict g = grad == NULL ? NULL : grad + r * step;
            if (center == NULL) {
#pragma omp simd
                for (npy_intp i = 0; i < width; i++) {
                    part[i] += a[i];
                }
            } else if (g == NULL) {
#pragma omp simd
                for (npy_intp i = 0; i < width; i++) {
                    part[i] += (a[i] - center[i]) * (a[i] - center[i]);
                }
            } else {
#pragma omp simd
                for (npy_intp i = 0; i < width; i++) {
                    part[i] += g[i] * (a[i] - center[i]);
                }
            }
        }
        for (npy_intp i = 0; i < width; i++) {
            total[i] += part[i];
        }
    }
}

/* Of columns from one to before another one, COLUMNS at most. */
static void F(normalize_columns)(const Channels *w, npy_intp from, npy_intp to)
{
    npy_intp width = to - from, step = w->channels;
    const REAL *first = (const REAL *)w->x + from;
    REAL mean[COLUMNS], scale[COLUMNS], bias[COLUMNS];
    if (w->training) {
        double total[COLUMNS], count = (double)w->rows;
        F(sum_block_of_columns)(first, NULL, NULL, w->rows, step, width, total);
        for (npy_intp i = 0; i < width; i++) {
            mean[i] = (REAL)(total[i] / count);
        }
        F(sum_block_of_columns)(first, NULL, mean, w->rows, step, width, total);
        for (npy_intp i = 0; i < width; i++) {
            scale[i] = F(new_statistics)(w, from + i, mean[i], (REAL)(total[i] / count));
        }
    } else {
        for (npy_intp i = 0; i < width; i++) {
            F(known_statistics)(w, from + i, mean + i, scale + i);
        }
    }
    for (npy_intp i = 0; i < width; i++) {
        scale[i] = F(factor)(w, from + i, scale[i]);
        bias[i] = w->bias == NULL ? (REAL)0 : ((const REAL *)w->bias)[from + i];
    }
    for (npy_intp r = 0; r < w->rows; r++) {
        const REAL *restrict x = first + r * step;
        REAL *restrict out = (REAL *)w->out + from + r * step;
#pragma omp simd
        for (npy_intp i = 0; i < width; i++) {
            out[i] = (x[i] - mean[i]) * scale[i] + bias[i];
        }
    }
}

static void F(columns_to_input)(const Channels *w, npy_intp from, npy_intp to)
{
    npy_intp width = to - from, step = w->channels;
    const REAL *grads = (const REAL *)w->grad + from, *inputs = (const REAL *)w->x + from;
    REAL mean[COLUMNS], rstd[COLUMNS], scale[COLUMNS];
    double shift[COLUMNS] = {0}, along[COLUMNS] = {0}, count = (double)w->rows;
    for (npy_intp i = 0; i < width; i++) {
        F(known_statistics)(w, from + i, mean + i, rstd + i);
        scale[i] = F(factor)(w, from + i, rstd[i]);
    }
    if (w->training || w->made[1] != NULL) {
        F(sum_block_of_columns)(grads, NULL, NULL, w->rows, step, width, shift);
    }
    if (w->training || w->made[0] != NULL) {
        F(sum_block_of_columns)(inputs, grads, mean, w->rows, step, width, along);
    }
    for (npy_intp i = 0; i < width && w->made[0] != NULL; i++) {
        ((REAL *)w->made[0])[from + i] = (REAL)(along[i] * (double)rstd[i]);
    }
    for (npy_intp i = 0; i < width && w->made[1] != NULL; i++) {
        ((REAL *)w->made[1])[from + i] = (REAL)shift[i];
    }
    if (w->out == NULL) {
        return;
    }
    REAL mean_shift[COLUMNS], slope[COLUMNS];
    for (npy_intp i = 0; i < width; i++) {
        mean_shift[i] = (REAL)(shift[i] / count);
        slope[i] = (REAL)(along[i] / count) * rstd[i] * rstd[i];
    }
    for (npy_intp r = 0; r < w->rows; r++) {
        const REAL *restrict grad = grads + r * step;
        const REAL *restrict x = inputs + r * step;
        REAL *restrict out = (REAL *)w->out + from + r * step;
        if (!w->training) {
#pragma omp simd
            for (npy_intp i = 0; i < width; i++) {
                out[i] = grad[i] * scale[i];
            }
            continue;
        }
#pragma omp simd
        for (npy_intp i = 0; i < width; i++) {
            out[i] = (grad[i] - mean_shift[i] - (x[i] - mean[i]) * slope[i]) * scale[i];
        }
    }
}

/* Channels from one to before another one. */
static void F(batch_norm)(const Channels *w, npy_intp from, npy_intp to)
{
    if (w->size > 1) {
        for (npy_intp c = from; c < to; c++) {
            if (w->grad == NULL) {
                F(normalize_runs)(w, c);
            } else {
                F(runs_to_input)(w, c);
            }
        }
        return;
    }
    for (npy_intp c = from; c < to; c += COLUMNS) {
        npy_intp end = to - c < COLUMNS ? to : c + COLUMNS;
        if (w->grad == NULL) {
            F(normalize_columns)(w, c, end);
        } else {
            F(columns_to_input)(w, c, end);
        }
    }
}
