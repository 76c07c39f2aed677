/* Products of small matrices, for one dtype; `REAL` and `F` are as in sums.h. Each element is added up
   in the same order, however large the matrices are. */

#if defined(__GNUC__)
typedef REAL F(Lanes) __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));
#define WIDTH ((npy_intp)(64 / sizeof(REAL)))
#define LANES_OF(x) (*(const F(Lanes) *)(x))

/* `rows` rows, up to TALL, by WIDTH columns of a @ b. */
#define TILE(rows)                                                                                 \
    for (npy_intp k = 0; k < inner; k++) {                                                         \
        const REAL *row = b + k * b_step;                                                          \
        F(Lanes) low = LANES_OF(row), high = LANES_OF(row + WIDTH / 2);                            \
        for (int r = 0; r < rows; r++) {                                                           \
            REAL x = a[r * a_rows + k * a_columns];                                                \
            sums[r][0] += x * low;                                                                 \
            sums[r][1] += x * high;                                                                \
        }                                                                                          \
    }

static inline void F(tile)(const REAL *a, npy_intp a_rows, npy_intp a_columns, const REAL *b,
                           npy_intp b_step, npy_intp inner, npy_intp rows, REAL found[TALL][64 / sizeof(REAL)])
{
    F(Lanes) sums[TALL][2] = {{{0}}};
    if (rows == 6) {
        TILE(6)
    } else if (rows == 5) {
        TILE(5)
    } else if (rows == 4) {
        TILE(4)
    } else if (rows == 3) {
        TILE(3)
    } else if (rows == 2) {
        TILE(2)
    } else {
        TILE(1)
    }
    memcpy(found, sums, sizeof(sums));
}

#undef TILE
#undef LANES_OF
#else
#define WIDTH ((npy_intp)(64 / sizeof(REAL)))

static inline void F(tile)(const REAL *a, npy_intp a_rows, npy_intp a_columns, const REAL *b,
                           npy_intp b_step, npy_intp inner, npy_intp rows, REAL found[TALL][64 / sizeof(REAL)])
{
    memset(found, 0, TALL * 64);
    for (npy_intp k = 0; k < inner; k++) {
        for (npy_intp r = 0; r < rows; r++) {
            REAL x = a[r * a_rows + k * a_columns];
            for (npy_intp j = 0; j < WIDTH; j++) {
                found[r][j] += x * b[k * b_step + j];
            }
        }
    }
}
#endif

/* b in rows whose length is a multiple of WIDTH. */
static void F(pack)(const REAL *b, npy_intp b_rows, npy_intp b_columns, npy_intp inner,
                    npy_intp columns, npy_intp width, REAL *packed)
{
    for (npy_intp k = 0; k < inner; k++) {
        REAL *row = packed + k * width;
        for (npy_intp j = 0; j < columns; j++) {
            row[j] = b[k * b_rows + j * b_columns];
        }
        for (npy_intp j = columns; j < width; j++) {
            row[j] = 0;
        }
    }
}

static void F(multiply)(const Product *work)
{
    const REAL *a = work->a, *b = work->b, *add = work->add;
    REAL *out = work->out;
    npy_intp columns = work->columns, step = work->b_rows;
    REAL alpha = (REAL)work->alpha, beta = (REAL)work->beta;
    REAL packed[PACKED];
    if (work->b_columns != 1 || columns % WIDTH) {
        step = (columns + WIDTH - 1) / WIDTH * WIDTH;
        F(pack)(b, work->b_rows, work->b_columns, work->inner, columns, step, packed);
        b = packed;
    }
    for (npy_intp column = 0; column < columns; column += WIDTH) {
        npy_intp width = columns - column < WIDTH ? columns - column : WIDTH;
        for (npy_intp row = 0; row < work->rows; row += TALL) {
            npy_intp rows = work->rows - row < TALL ? work->rows - row : TALL;
            REAL found[TALL][64 / sizeof(REAL)];
            F(tile)(a + row * work->a_rows, work->a_rows, work->a_columns, b + column, step,
                    work->inner, rows, found);
            for (npy_intp r = 0; r < rows; r++) {
                REAL *target = out + (row + r) * columns + column;
                if (alpha != 1) {
                    for (npy_intp j = 0; j < width; j++) {
                        found[r][j] *= alpha;
                    }
                }
                if (add == NULL || beta == 0) {
                    memcpy(target, found[r], (size_t)width * sizeof(REAL));
                    continue;
                }
                const REAL *more = add + (row + r) * work->add_rows + column * work->add_columns;
                for (npy_intp j = 0; j < width; j++) {
                    target[j] = found[r][j] + beta * more[j * work->add_columns];
                }
            }
        }
    }
}

/* Steps count elements; `made` has panels of WIDTH columns one behind the other, the last of them
   filled up with zeros. A matrix that is multiplied by many times is laid out so once. */
static void F(to_panels)(const void *given, npy_intp row_step, npy_intp column_step,
                         npy_intp inner, npy_intp columns, void *made)
{
    const REAL *b = given;
    REAL *panel = made;
    for (npy_intp column = 0; column < columns; column += WIDTH) {
        npy_intp width = columns - column < WIDTH ? columns - column : WIDTH;
        F(pack)(b + column * column_step, row_step, column_step, inner, width, WIDTH, panel);
        panel += inner * WIDTH;
    }
}

/* made = a @ b, with b in panels, and a and `made` contiguous; nothing is laid out anew, as BLAS does
   for each product. */
static void F(multiply_panels)(const void *given, npy_intp rows, npy_intp inner, const void *panels,
                               npy_intp columns, void *made)
{
    const REAL *a = given;
    for (npy_intp from = 0; from < inner; from += HEIGHT) {
        npy_intp depth = inner - from < HEIGHT ? inner - from : HEIGHT;
        for (npy_intp column = 0; column < columns; column += WIDTH) {
            const REAL *panel = (const REAL *)panels + column * inner + from * WIDTH;
            npy_intp width = columns - column < WIDTH ? columns - column : WIDTH;
            for (npy_intp row = 0; row < rows; row += TALL) {
                npy_intp few = rows - row < TALL ? rows - row : TALL;
                REAL found[TALL][64 / sizeof(REAL)];
                F(tile)(a + row * inner + from, inner, 1, panel, WIDTH, depth, few, found);
                for (npy_intp r = 0; r < few; r++) {
                    REAL *target = (REAL *)made + (row + r) * columns + column;
                    for (npy_intp j = 0; j < width; j++) {
                        target[j] = from == 0 ? found[r][j] : target[j] + found[r][j];
                    }
                }
            }
        }
    }
}

/* Sums over rows. */
static void F(add_rows)(const void *given, npy_intp rows, npy_intp row_step, npy_intp columns,
                        npy_intp column_step, void *made)
{
    const REAL *a = given;
    REAL *out = made;
    for (npy_intp j = 0; j < columns; j++) {
        REAL total = 0;
        for (npy_intp i = 0; i < rows; i++) {
            total += a[i * row_step + j * column_step];
        }
        out[j] = total;
    }
}

