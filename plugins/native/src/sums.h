/* Sums, for one dtype: `REAL` is its C type, and `F(name)` a name for that type. This file is read
   once for each, as are rows.h and elementwise.h.

   Arrays are given by their first element and their size; they are contiguous, and results overlap
   with nothing. `#pragma omp simd` allows the compiler to add up in another order. */


static double F(sum_block)(const REAL *restrict x, npy_intp n)
{
    REAL a = 0, b = 0, c = 0, d = 0;
    npy_intp quarter = n < 64 ? 0 : n / 4;
    /* Four sums at once, since an addition takes longer than it takes to begin another one. */
#pragma omp simd reduction(+ : a, b, c, d)
    for (npy_intp i = 0; i < quarter; i++) {
        a += x[i];
        b += x[i + quarter];
        c += x[i + 2 * quarter];
        d += x[i + 3 * quarter];
    }
    REAL rest = 0;
#pragma omp simd reduction(+ : rest)
    for (npy_intp i = 4 * quarter; i < n; i++) {
        rest += x[i];
    }
    return (double)((a + b) + (c + d) + rest);
}

/* The middle of a range of blocks. */
static inline npy_intp F(middle)(npy_intp n)
{
    return n / BLOCK / 2 * BLOCK + (n < 2 * BLOCK ? BLOCK : 0);
}

/* In pairs of halves, so that errors grow with the logarithm of the size. */
static double F(sum)(const void *given, npy_intp n)
{
    const REAL *x = given;
    if (n <= BLOCK) {
        return F(sum_block)(x, n);
    }
    npy_intp half = F(middle)(n);
    return F(sum)(x, half) + F(sum)(x + half, n - half);
}

/* The sum of (x - y)^2; `y` may be NULL, then of (x - center)^2. */
static double F(sum_squares)(const REAL *restrict x, const REAL *restrict y, REAL center,
                             npy_intp n)
{
    if (n > BLOCK) {
        npy_intp half = F(middle)(n);
        return F(sum_squares)(x, y, center, half) +
               F(sum_squares)(x + half, y == NULL ? NULL : y + half, center, n - half);
    }
    REAL total = 0;
    if (y == NULL) {
#pragma omp simd reduction(+ : total)
        for (npy_intp i = 0; i < n; i++) {
            REAL difference = x[i] - center;
            total += difference * difference;
        }
        return total;
    }
#pragma omp simd reduction(+ : total)
    for (npy_intp i = 0; i < n; i++) {
        REAL difference = x[i] - y[i];
        total += difference * difference;
    }
    return total;
}

/* The sum of the products; `factor`, which may be NULL, multiplies them. */
static double F(sum_products)(const REAL *restrict x, const REAL *restrict y, npy_intp n)
{
    if (n > BLOCK) {
        npy_intp half = F(middle)(n);
        return F(sum_products)(x, y, half) + F(sum_products)(x + half, y + half, n - half);
    }
    REAL total = 0;
#pragma omp simd reduction(+ : total)
    for (npy_intp i = 0; i < n; i++) {
        total += x[i] * y[i];
    }
    return total;
}

static void F(sum_rows)(const void *given, void *made, npy_intp rows, npy_intp n, double divisor)
{
    const REAL *x = given;
    REAL *out = made;
    for (npy_intp r = 0; r < rows; r++) {
        out[r] = (REAL)(F(sum)(x + r * n, n) / divisor);
    }
}

static void F(sum_columns)(const void *given, void *made, npy_intp rows, npy_intp n,
                           double divisor)
{
    REAL *out = made;
    for (npy_intp first = 0; first < n; first += COLUMNS) {
        const REAL *x = (const REAL *)given + first;
        npy_intp width = n - first < COLUMNS ? n - first : COLUMNS;
        double total[COLUMNS] = {0};
        for (npy_intp r = 0; r < rows; r += ROWS) {
            REAL part[COLUMNS] = {0};
            npy_intp end = rows - r < ROWS ? rows : r + ROWS;
            for (npy_intp k = r; k < end; k++) {
#pragma omp simd
                for (npy_intp i = 0; i < width; i++) {
                    part[i] += x[k * n + i];
                }
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
