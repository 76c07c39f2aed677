/* Group normalisation and its gradients, for one dtype; read once for each by kinds.h.

   Arrays are (samples, groups, channels of one, size). A group is a run of elements, in which each
   channel has `size`. */

#ifndef PLUGRAD_GROUPS_H
#define PLUGRAD_GROUPS_H

/* What is read and written; what may be NULL says so. */
typedef struct {
    const void *x, *grad;      /* `grad`: NULL for the forward kernel */
    const void *weight, *bias; /* NULL without */
    void *mean, *rstd;         /* of each group: results of the forward kernel */
    void *out;                 /* normalised, or the gradient in the input, which may be NULL */
    void *along, *shift;       /* of each channel of each sample, for gradients; see below */
    npy_intp samples, groups, channels, size; /* `channels` of one group */
    double eps;
} Groups;

#endif

static void F(normalize_group)(const Groups *w, npy_intp g)
{
    npy_intp channels = w->channels, n = w->size, first = (g % w->groups) * channels;
    const REAL *restrict x = (const REAL *)w->x + g * channels * n;
    REAL *restrict out = (REAL *)w->out + g * channels * n;
    const REAL *restrict weight = w->weight == NULL ? NULL : (const REAL *)w->weight + first;
    const REAL *restrict bias = w->bias == NULL ? NULL : (const REAL *)w->bias + first;
    double count = (double)(channels * n);
    REAL mean = (REAL)(F(sum)(x, channels * n) / count);
    double variance = F(sum_squares)(x, mean, channels * n) / count;
    REAL rstd = (REAL)(1.0 / sqrt(variance + w->eps));
    ((REAL *)w->mean)[g] = mean;
    ((REAL *)w->rstd)[g] = rstd;
    if (n == 1 || (weight == NULL && bias == NULL)) {
#pragma omp simd
        for (npy_intp i = 0; i < channels * n; i++) {
            out[i] = (x[i] - mean) * rstd;
        }
        for (npy_intp i = 0; weight != NULL && i < channels; i++) {
            out[i] *= weight[i];
        }
        for (npy_intp i = 0; bias != NULL && i < channels; i++) {
            out[i] += bias[i];
        }
        return;
    }
    for (npy_intp c = 0; c < channels; c++) {
        REAL scale = weight == NULL ? rstd : rstd * weight[c];
        REAL shift = bias == NULL ? (REAL)0 : bias[c];
#pragma omp simd
        for (npy_intp i = c * n; i < (c + 1) * n; i++) {
            out[i] = (x[i] - mean) * scale + shift;
        }
    }
}

/* Of each channel the sums of grad * x, normalised, and of grad: what its weight and bias have from
   this sample. */
static void F(sum_group)(const Groups *w, npy_intp g)
{
    npy_intp channels = w->channels, n = w->size;
    const REAL *grads = (const REAL *)w->grad + g * channels * n;
    const REAL *inputs = (const REAL *)w->x + g * channels * n;
    REAL *restrict along = (REAL *)w->along + g * channels;
    REAL *restrict shift = (REAL *)w->shift + g * channels;
    REAL mean = ((const REAL *)w->mean)[g], rstd = ((const REAL *)w->rstd)[g];
    if (n == 1) {
#pragma omp simd
        for (npy_intp c = 0; c < channels; c++) {
            along[c] = grads[c] * ((inputs[c] - mean) * rstd);
            shift[c] = grads[c];
        }
        return;
    }
    for (npy_intp c = 0; c < channels; c++) {
        double total_along = 0, total_shift = 0;
        for (npy_intp from = 0; from < n; from += BLOCK) {
            npy_intp width = n - from < BLOCK ? n - from : BLOCK;
            const REAL *restrict grad = grads + c * n + from;
            const REAL *restrict x = inputs + c * n + from;
            REAL a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
            for (npy_intp i = 0; i < width; i++) {
                a += grad[i];
                b += grad[i] * (x[i] - mean);
            }
            total_shift += a;
            total_along += b;
        }
        along[c] = (REAL)(total_along * (double)rstd);
        shift[c] = (REAL)total_shift;
    }
}

static void F(group_to_input)(const Groups *w, npy_intp g)
{
    npy_intp channels = w->channels, n = w->size, first = (g % w->groups) * channels;
    const REAL *restrict grad = (const REAL *)w->grad + g * channels * n;
    const REAL *restrict x = (const REAL *)w->x + g * channels * n;
    REAL *restrict out = (REAL *)w->out + g * channels * n;
    const REAL *along = (const REAL *)w->along + g * channels;
    const REAL *shift = (const REAL *)w->shift + g * channels;
    REAL mean = ((const REAL *)w->mean)[g], rstd = ((const REAL *)w->rstd)[g];
    double total_along, total_shift, count = (double)(channels * n);
    const REAL *restrict weight = w->weight == NULL ? NULL : (const REAL *)w->weight + first;
    if (weight == NULL) {
        total_along = F(sum)(along, channels);
        total_shift = F(sum)(shift, channels);
    } else {
        total_along = F(sum_products)(along, weight, channels);
        total_shift = F(sum_products)(shift, weight, channels);
    }
    REAL slope = (REAL)(total_along / count) * rstd;
    REAL mean_shift = (REAL)(total_shift / count);
    if (weight == NULL) {
#pragma omp simd
        for (npy_intp i = 0; i < channels * n; i++) {
            out[i] = (grad[i] - mean_shift - (x[i] - mean) * slope) * rstd;
        }
        return;
    }
    if (n == 1) {
#pragma omp simd
        for (npy_intp c = 0; c < channels; c++) {
            out[c] = (grad[c] * weight[c] - mean_shift - (x[c] - mean) * slope) * rstd;
        }
        return;
    }
    for (npy_intp c = 0; c < channels; c++) {
        REAL factor = weight[c];
#pragma omp simd
        for (npy_intp i = c * n; i < (c + 1) * n; i++) {
            out[i] = (grad[i] * factor - mean_shift - (x[i] - mean) * slope) * rstd;
        }
    }
}

/* Groups of all samples, from one to before another one. */
static void F(group_norm)(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Groups *w = given;
    for (npy_intp g = from; g < to; g++) {
        if (w->grad == NULL) {
            F(normalize_group)(w, g);
            continue;
        }
        F(sum_group)(w, g);
        if (w->out != NULL) {
            F(group_to_input)(w, g);
        }
    }
}
