/* What is computed of two elements, for one dtype; `REAL` and `F` are as in sums.h. A step is 1, or
   0 where one number stands for all. The result may be one of the operands. */

/* Memory takes the time, which vectors of 256 bits leave better used than those of 512. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("prefer-vector-width=256")
#endif

#define PAIR(name, TYPE, expression)                                                               \
    static void F(name)(const void *left, int left_step, const void *right, int right_step,        \
                        void *made, npy_intp n)                                                    \
    {                                                                                              \
        const REAL *a = left, *b = right;                                                          \
        TYPE *out = made;                                                                          \
        if (left_step && right_step) {                                                             \
            _Pragma("omp simd") for (npy_intp i = 0; i < n; i++)                                   \
            {                                                                                      \
                REAL x = a[i], y = b[i];                                                           \
                out[i] = expression;                                                               \
            }                                                                                      \
        } else if (left_step) {                                                                    \
            REAL y = *b;                                                                           \
            _Pragma("omp simd") for (npy_intp i = 0; i < n; i++)                                   \
            {                                                                                      \
                REAL x = a[i];                                                                     \
                out[i] = expression;                                                               \
            }                                                                                      \
        } else {                                                                                   \
            REAL x = *a;                                                                           \
            _Pragma("omp simd") for (npy_intp i = 0; i < n; i++)                                   \
            {                                                                                      \
                REAL y = b[i];                                                                     \
                out[i] = expression;                                                               \
            }                                                                                      \
        }                                                                                          \
    }

PAIR(sum_of_two, REAL, x + y)
PAIR(difference, REAL, x - y)
PAIR(product_of_two, REAL, x * y)
PAIR(quotient, REAL, x / y)
/* nan is the largest, and the smallest. */
PAIR(larger, REAL, x >= y || x != x ? x : y)
PAIR(smaller, REAL, x <= y || x != x ? x : y)
PAIR(equal_to, npy_bool, x == y)
PAIR(other_than, npy_bool, x != y)
PAIR(less_than, npy_bool, x < y)
PAIR(at_most, npy_bool, x <= y)
PAIR(greater_than, npy_bool, x > y)
PAIR(at_least, npy_bool, x >= y)

#undef PAIR

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
