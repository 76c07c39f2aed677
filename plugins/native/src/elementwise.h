/* What is computed element by element, for one dtype. EXP, LOG, TANH, ERF, SQRT and ABS are the
   dtype's functions; the rest is as in sums.h. */

#define ELEMENTWISE(name, expression)                                                              \
    static void F(name)(const void *given, void *made, npy_intp n)                                 \
    {                                                                                              \
        const REAL *restrict inputs = given;                                                       \
        REAL *restrict out = made;                                                                 \
        _Pragma("omp simd") for (npy_intp i = 0; i < n; i++)                                       \
        {                                                                                          \
            REAL x = inputs[i];                                                                    \
            out[i] = expression;                                                                   \
        }                                                                                          \
    }

#define GRADIENT(name, slope)                                                                      \
    static void F(name)(const void *grads, const void *given, void *made, npy_intp n)              \
    {                                                                                              \
        const REAL *restrict grad = grads;                                                         \
        const REAL *restrict inputs = given;                                                       \
        REAL *restrict out = made;                                                                 \
        _Pragma("omp simd") for (npy_intp i = 0; i < n; i++)                                       \
        {                                                                                          \
            REAL x = inputs[i];                                                                    \
            out[i] = slope * grad[i];                                                              \
        }                                                                                          \
    }

#define HALF ((REAL)0.5)
#define ONE ((REAL)1)
#define DENSITY ((REAL)0.39894228040143267794)    /* 1 / sqrt(2 pi) */
#define GELU_SCALE ((REAL)0.79788456080286535588) /* sqrt(2 / pi) */
#define GELU_CUBIC ((REAL)0.044715)

static inline REAL F(sigmoid_of)(REAL x)
{
    return ONE / (ONE + EXP(-x));
}

static inline REAL F(gelu_slope)(REAL x)
{
    return x * (EXP(-HALF * x * x) * DENSITY) + F(normal)(x);
}

static inline REAL F(gelu_tanh_of)(REAL x)
{
    return TANH(x * (GELU_SCALE + GELU_SCALE * GELU_CUBIC * (x * x)));
}

static inline REAL F(gelu_tanh_slope)(REAL x)
{
    REAL t = F(gelu_tanh_of)(x);
    REAL inner = x * (GELU_SCALE + 3 * GELU_SCALE * GELU_CUBIC * (x * x));
    return HALF * (inner * (ONE - t * t) + t + ONE);
}

static inline REAL F(silu_slope)(REAL x)
{
    REAL s = F(sigmoid_of)(x);
    return s * (ONE + x * (ONE - s));
}

ELEMENTWISE(negative, -x)
ELEMENTWISE(absolute, ABS(x))
ELEMENTWISE(square_root, SQRT(x))
ELEMENTWISE(square, x *x)
ELEMENTWISE(cube, x *x *x)
ELEMENTWISE(reciprocal, ONE / x)
ELEMENTWISE(reciprocal_root, ONE / SQRT(x))
ELEMENTWISE(relu, x < 0 ? 0 : x)
ELEMENTWISE(exponential, EXP(x))
ELEMENTWISE(logarithm, LOG(x))
ELEMENTWISE(sigmoid, F(sigmoid_of)(x))
ELEMENTWISE(error_function, ERF(x))
ELEMENTWISE(hyperbolic_tangent, TANH(x))
ELEMENTWISE(silu, F(sigmoid_of)(x) * x)
ELEMENTWISE(gelu, F(normal)(x) * x)
ELEMENTWISE(gelu_tanh, HALF *(ONE + F(gelu_tanh_of)(x)) * x)
/* Of these, the result is given. */
GRADIENT(tanh_backward, (ONE - x * x))
GRADIENT(sigmoid_backward, ((ONE - x) * x))
GRADIENT(silu_backward, F(silu_slope)(x))
GRADIENT(gelu_backward, F(gelu_slope)(x))
GRADIENT(gelu_tanh_backward, F(gelu_tanh_slope)(x))

static void F(threshold_backward)(const void *grads, const void *given, void *made, npy_intp n,
                                  double limit)
{
    const REAL *restrict grad = grads;
    const REAL *restrict x = given;
    REAL *restrict out = made;
    REAL least = (REAL)limit;
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        out[i] = x[i] <= least ? 0 : grad[i];
    }
}

/* Between two numbers, neither of them nan; the upper one wins. nan stays. */
static void F(clamp)(const void *given, void *made, npy_intp n, double least, double most)
{
    const REAL *restrict x = given;
    REAL *restrict out = made;
    REAL low = (REAL)least, high = (REAL)most;
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        REAL raised = x[i] < low ? low : x[i];
        out[i] = raised > high ? high : raised;
    }
}

static double F(squared_difference)(const void *a, const void *b, npy_intp n)
{
    return F(sum_squared_differences)(a, b, n);
}

/* factor * (a - b) */
static void F(scaled_difference)(const void *first, const void *second, void *made, npy_intp n,
                                 double factor)
{
    const REAL *restrict a = first;
    const REAL *restrict b = second;
    REAL *restrict out = made;
    REAL scale = (REAL)factor;
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (a[i] - b[i]) * scale;
    }
}

#undef ELEMENTWISE
#undef GRADIENT
#undef HALF
#undef ONE
#undef DENSITY
#undef GELU_SCALE
#undef GELU_CUBIC
