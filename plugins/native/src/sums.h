/* Sums, for one dtype: `REAL` is its C type, and `F(name)` a name for that type. This file is read
   once for each, as are rows.h and elementwise.h.

   Arrays are given by their first element and their size; they are contiguous, and results overlap
   with nothing. `#pragma omp simd` allows the compiler to add up in another order. */

static inline double F(sum_block)(const REAL *restrict x, npy_intp n)
{
    REAL total = 0, rest = 0;
    npy_intp whole = 0;
    if (n >= 2 * LANES) {
        /* Many sums at once, since an addition takes longer than it takes to begin another one. */
        REAL sums[LANES], t[LANES / 4];
#pragma omp simd
        for (int k = 0; k < LANES; k++) {
            sums[k] = x[k] + x[k + LANES];
        }
        whole = n - n % LANES;
        for (npy_intp i = 2 * LANES; i < whole; i += LANES) {
#pragma omp simd
            for (int k = 0; k < LANES; k++) {
                sums[k] += x[i + k];
            }
        }
#pragma omp simd
        for (int k = 0; k < LANES / 4; k++) {
            t[k] = (sums[k] + sums[k + 8]) + (sums[k + 16] + sums[k + 24]);
        }
        total = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
    }
    /* Of few elements, wider vectors would leave more to be added up one by one. */
#pragma omp simd reduction(+ : rest) simdlen(8)
    for (npy_intp i = whole; i < n; i++) {
        rest += x[i];
    }
    return (double)total + (double)rest;
}

/* The sum of LONG_BLOCK elements: so many sums at once, and so few times that they are added up, that
   memory is what takes the time, which is read in its order. For the sake of rounding, four elements
   make one of 16 that a sum has. */
static inline double F(sum_long_block)(const REAL *restrict x)
{
    REAL sums[2 * LANES] = {0};
    for (npy_intp first = 0; first < LONG_BLOCK; first += 8 * LANES) {
        for (int part = 0; part < 2 * LANES; part += 16) {
#pragma omp simd
            for (int k = 0; k < 16; k++) {
                const REAL *y = x + first + 4 * part + k;
                sums[part + k] += (y[0] + y[16]) + (y[32] + y[48]);
            }
        }
    }
    return F(sum_block)(sums, 2 * LANES);
}

static double F(sum)(const void *given, npy_intp n)
{
    const REAL *x = given;
    if (n <= BLOCK) {
        return F(sum_block)(x, n);
    }
    Total sum = {0, 0};
    npy_intp first = 0;
    for (; n - first >= LONG_BLOCK; first += LONG_BLOCK) {
        add(&sum, F(sum_long_block)(x + first));
    }
    for (; first < n; first += BLOCK) {
        add(&sum, F(sum_block)(x + first, n - first < BLOCK ? n - first : BLOCK));
    }
    return total_of(sum);
}

/* The sum of an expression in `i`. Long blocks have many sums at once, as in sum_block. */
#define SUM(name, parameters, expression)                                                          \
    static double F(name) parameters                                                               \
    {                                                                                              \
        Total sum = {0, 0};                                                                        \
        for (npy_intp first = 0; first < n; first += BLOCK) {                                      \
            npy_intp end = n - first < BLOCK ? n : first + BLOCK, whole = first;                   \
            REAL part = 0, rest = 0;                                                               \
            if (end - first >= 4 * LANES) {                                                        \
                REAL sums[LANES] = {0};                                                            \
                whole = end - (end - first) % LANES;                                               \
                for (npy_intp start = first; start < whole; start += LANES) {                      \
                    _Pragma("omp simd") for (int k = 0; k < LANES; k++)                            \
                    {                                                                              \
                        npy_intp i = start + k;                                                    \
                        sums[k] += expression;                                                     \
                    }                                                                              \
                }                                                                                  \
                _Pragma("omp simd reduction(+ : part)") for (int k = 0; k < LANES; k++)            \
                {                                                                                  \
                    part += sums[k];                                                               \
                }                                                                                  \
            }                                                                                      \
            _Pragma("omp simd reduction(+ : rest)") for (npy_intp i = whole; i < end; i++)         \
            {                                                                                      \
                rest += expression;                                                                \
            }                                                                                      \
            if (n <= BLOCK) {                                                                      \
                return (double)part + (double)rest;                                                \
            }                                                                                      \
            add(&sum, (double)part + (double)rest);                                                \
        }                                                                                          \
        return total_of(sum);                                                                      \
    }

SUM(sum_squares, (const REAL *restrict x, REAL center, npy_intp n),
    (x[i] - center) * (x[i] - center))
SUM(sum_squared_differences, (const REAL *restrict x, const REAL *restrict y, npy_intp n),
    (x[i] - y[i]) * (x[i] - y[i]))
SUM(sum_products, (const REAL *restrict x, const REAL *restrict y, npy_intp n), x[i] * y[i])

#undef SUM

static void F(sum_rows)(const void *given, void *made, npy_intp rows, npy_intp n, double divisor)
{
    const REAL *x = given;
    REAL *out = made;
    for (npy_intp r = 0; r < rows; r++) {
        out[r] = (REAL)(F(sum)(x + r * n, n) / divisor);
    }
}

/* Adds up `rows` rows of `width` elements, which begin `n` elements apart. */
static inline void F(sum_block_of_rows)(const REAL *x, npy_intp rows, npy_intp n, npy_intp width,
                               REAL *restrict part)
{
    npy_intp k = 0;
    memset(part, 0, (size_t)width * sizeof(REAL));
    for (; k + 8 <= rows; k += 8) {
        const REAL *restrict a = x + k * n, *restrict b = a + n;
        const REAL *restrict c = b + n, *restrict d = c + n;
        const REAL *restrict e = d + n, *restrict f = e + n;
        const REAL *restrict g = f + n, *restrict h = g + n;
#pragma omp simd
        for (npy_intp i = 0; i < width; i++) {
            part[i] += ((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i]));
        }
    }
    for (; k + 4 <= rows; k += 4) {
        const REAL *restrict a = x + k * n, *restrict b = a + n;
        const REAL *restrict c = b + n, *restrict d = c + n;
#pragma omp simd
        for (npy_intp i = 0; i < width; i++) {
            part[i] += (a[i] + b[i]) + (c[i] + d[i]);
        }
    }
    for (; k < rows; k++) {
#pragma omp simd
        for (npy_intp i = 0; i < width; i++) {
            part[i] += x[k * n + i];
        }
    }
}

/* Columns from one to before another one. `parts` may have the sums of each ROWS rows, n a time, else
   it is NULL. */
static void F(sum_columns)(const void *given, const void *parts, void *made, npy_intp rows,
                           npy_intp n, npy_intp from, npy_intp to, double divisor)
{
    REAL *out = made;
    for (npy_intp first = from; first < to; first += WIDE) {
        npy_intp width = to - first < WIDE ? to - first : WIDE;
        double total[WIDE] = {0};
        for (npy_intp r = 0; r < rows; r += ROWS) {
            REAL own[WIDE];
            const REAL *part = own;
            if (parts == NULL) {
                F(sum_block_of_rows)((const REAL *)given + r * n + first,
                            rows - r < ROWS ? rows - r : ROWS, n, width, own);
            } else {
                part = (const REAL *)parts + r / ROWS * n + first;
            }
            for (npy_intp i = 0; i < width; i++) {
                total[i] += part[i];
            }
        }
        for (npy_intp i = 0; i < width; i++) {
            out[first + i] = (REAL)(total[i] / divisor);
        }
    }
}

/* The `parts` of sum_columns, from one to before another one. */
static void F(sum_parts_of_columns)(const void *given, void *parts, npy_intp rows, npy_intp n,
                                    npy_intp from, npy_intp to)
{
    for (npy_intp part = from; part < to; part++) {
        npy_intp r = part * ROWS, count = rows - r < ROWS ? rows - r : ROWS;
        for (npy_intp first = 0; first < n; first += WIDE) {
            F(sum_block_of_rows)((const REAL *)given + r * n + first, count, n,
                        n - first < WIDE ? n - first : WIDE,
                        (REAL *)parts + part * n + first);
        }
    }
}

/* Sums of each element of a row and those before it. */
static void F(cumsum)(const void *given, void *made, npy_intp rows, npy_intp n)
{
    for (npy_intp r = 0; r < rows; r++) {
        const REAL *restrict x = (const REAL *)given + r * n;
        REAL *restrict out = (REAL *)made + r * n;
        double total = 0;
        for (npy_intp i = 0; i < n; i++) {
            total += x[i];
            out[i] = (REAL)total;
        }
    }
}
