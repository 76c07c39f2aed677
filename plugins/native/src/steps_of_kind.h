/* One parameter's step, for one dtype: steps.c reads this file once for each. `#pragma omp simd`
   says that arrays do not overlap, and changes no operation. */

static inline void F(sgd_elements)(REAL *restrict p, const REAL *restrict grad, REAL *restrict v,
                                   ptrdiff_t n, const SgdNumbers *numbers, int has_momentum,
                                   int nesterov, int decays)
{
    const REAL rate = (REAL)-numbers->lr, momentum = (REAL)numbers->momentum;
    const REAL kept = (REAL)(1 - numbers->dampening), decay = (REAL)numbers->weight_decay;
    const REAL sign = numbers->maximize ? (REAL)-1 : (REAL)1;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        REAL g = grad[i] * sign;
        g = decays ? g + p[i] * decay : g;
        if (has_momentum) {
            REAL now = v[i] * momentum + g * kept;
            v[i] = now;
            g = nesterov ? g + now * momentum : now;
        }
        p[i] = p[i] + g * rate;
    }
}

void F(sgd_step)(void *p, const void *grad, void *v, ptrdiff_t n, const SgdNumbers *numbers)
{
    /* What does not change is known where the loop is made, which then has no branches. */
    int decays = numbers->weight_decay != 0;
    if (v == NULL) {
        F(sgd_elements)(p, grad, v, n, numbers, 0, 0, decays);
    } else if (numbers->nesterov) {
        F(sgd_elements)(p, grad, v, n, numbers, 1, 1, decays);
    } else if (decays) {
        F(sgd_elements)(p, grad, v, n, numbers, 1, 0, 1);
    } else {
        F(sgd_elements)(p, grad, v, n, numbers, 1, 0, 0);
    }
}

static inline void F(adam_elements)(REAL *restrict p, const REAL *restrict grad,
                                    REAL *restrict mean, REAL *restrict square,
                                    REAL *restrict largest, ptrdiff_t n, double rate,
                                    double epsilon, const AdamNumbers *numbers, int near,
                                    int decays, int keeps_largest)
{
    /* As lerp does: from the end that is nearer. */
    const double from_end = 1 - numbers->beta1;
    const REAL share = (REAL)(near ? from_end : 1 - from_end);
    const REAL beta2 = (REAL)numbers->beta2, rest = (REAL)(1 - numbers->beta2);
    const REAL shrink = (REAL)(1 - numbers->decay), decay = (REAL)numbers->weight_decay;
    const REAL sign = numbers->maximize ? (REAL)-1 : (REAL)1;
    const REAL step = (REAL)-rate, small = (REAL)epsilon;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        REAL old = p[i] * shrink;
        REAL g = grad[i] * sign;
        g = decays ? g + old * decay : g;
        REAL away = (g - mean[i]) * share;
        REAL m = near ? mean[i] + away : g - away;
        REAL s = square[i] * beta2 + g * rest * g;
        mean[i] = m;
        square[i] = s;
        if (keeps_largest) {
            REAL top = largest[i];
            s = top >= s || top != top ? top : s;
            largest[i] = s;
        }
        p[i] = old + m * step / (ROOT(s) + small);
    }
}

void F(adam_step)(void *p, const void *grad, void *mean, void *square, void *largest, ptrdiff_t n,
                  double rate, double epsilon, const AdamNumbers *numbers)
{
    int near = fabs(1 - numbers->beta1) < 0.5, decays = numbers->weight_decay != 0;
    if (largest != NULL) {
        F(adam_elements)(p, grad, mean, square, largest, n, rate, epsilon, numbers, near, decays,
                         1);
    } else if (!near || decays) {
        F(adam_elements)(p, grad, mean, square, NULL, n, rate, epsilon, numbers, near, decays, 0);
    } else {
        F(adam_elements)(p, grad, mean, square, NULL, n, rate, epsilon, numbers, 1, 0, 0);
    }
}
