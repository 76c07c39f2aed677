/* Attention of one head, for one dtype: blocks of rows of the weights that stay in the cache. A
   block has all columns of its rows, so that a row needs no running maximum. */

/* A matrix (inner, columns) as strips of WIDTH columns, one after the other in memory. */
static void F(pack_strips)(const REAL *b, npy_intp b_rows, npy_intp b_columns, npy_intp inner,
                           npy_intp columns, REAL *packed)
{
    for (npy_intp column = 0; column < columns; column += WIDTH) {
        npy_intp width = columns - column < WIDTH ? columns - column : WIDTH;
        F(pack)(b + column * b_columns, b_rows, b_columns, inner, width, WIDTH, packed);
        packed += inner * WIDTH;
    }
}

/* out (+)= a @ b, of which there are strips of `length` rows; steps count elements. */
static void F(multiply_strips)(const REAL *a, npy_intp a_rows, npy_intp a_columns,
                               const REAL *strips, npy_intp length, npy_intp rows, npy_intp inner,
                               npy_intp columns, REAL *out, npy_intp out_step, int adds)
{
    for (npy_intp from = 0; from < inner; from += HEIGHT) {
        npy_intp height = inner - from < HEIGHT ? inner - from : HEIGHT;
        int more = adds || from > 0;
        for (npy_intp column = 0; column < columns; column += WIDTH) {
            npy_intp width = columns - column < WIDTH ? columns - column : WIDTH;
            const REAL *strip = strips + column * length + from * WIDTH;
            for (npy_intp row = 0; row < rows; row += TALL) {
                npy_intp some = rows - row < TALL ? rows - row : TALL;
                REAL found[TALL][64 / sizeof(REAL)];
                F(tile)(a + row * a_rows + from * a_columns, a_rows, a_columns, strip, WIDTH,
                        height, some, found);
                for (npy_intp r = 0; r < some; r++) {
                    REAL *target = out + (row + r) * out_step + column;
                    if (!more) {
                        memcpy(target, found[r], (size_t)width * sizeof(REAL));
                        continue;
                    }
                    for (npy_intp j = 0; j < width; j++) {
                        target[j] += found[r][j];
                    }
                }
            }
        }
    }
}

/* Scores times the scale, with what a mask adds or hides. */
static void F(weigh_in)(const Attention *w, REAL *restrict x, npy_intp n, const char *mask)
{
    REAL scale = (REAL)w->scale;
    if (mask == NULL) {
#pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            x[i] *= scale;
        }
    } else if (w->hides) {
        for (npy_intp i = 0; i < n; i++) {
            x[i] = mask[i * w->mask_column] ? x[i] * scale : -(REAL)INFINITY;
        }
    } else {
        for (npy_intp i = 0; i < n; i++) {
            x[i] = x[i] * scale + *(const REAL *)(mask + i * w->mask_column);
        }
    }
}

/* The scores of a block of rows, and how many columns they have. */
static npy_intp F(scores)(const Attention *w, const Head *head, npy_intp first, npy_intp rows,
                          const REAL *keys, REAL *made)
{
    npy_intp columns = w->causal && first + rows < w->columns ? first + rows : w->columns;
    const REAL *query = (const REAL *)head->query + first * w->query.row;
    F(multiply_strips)(query, w->query.row, 1, keys, w->width, rows, w->width, columns, made,
                       w->wide, 0);
    for (npy_intp r = 0; r < rows; r++) {
        npy_intp used = w->causal && first + r + 1 < columns ? first + r + 1 : columns;
        const char *mask = head->mask == NULL ? NULL : head->mask + (first + r) * w->mask_row;
        F(weigh_in)(w, made + r * w->wide, used, mask);
        for (npy_intp i = used; i < columns; i++) {
            made[r * w->wide + i] = -(REAL)INFINITY;
        }
    }
    return columns;
}

/* x = exp(x - shift), and the sum of that. */
static REAL F(raise)(REAL *restrict x, npy_intp n, REAL shift)
{
    double total = 0;
    for (npy_intp first = 0; first < n; first += BLOCK) {
        npy_intp end = n - first < BLOCK ? n : first + BLOCK;
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (npy_intp i = first; i < end; i++) {
            REAL e = EXP(x[i] - shift);
            x[i] = e;
            part += e;
        }
        total += part;
    }
    return (REAL)total;
}

/* The result, and the logarithm of each row's sum of exponentials: infinity for an empty sum. */
static void F(attention)(const Attention *w, const Head *head, void *memory)
{
    REAL *keys = memory, *values = keys + w->width * w->wide;
    REAL *weights = values + w->columns * w->value_wide;
    F(pack_strips)(head->key, 1, w->key.row, w->width, w->columns, keys);
    F(pack_strips)(head->value, w->value.row, 1, w->columns, w->value_width, values);
    for (npy_intp first = 0; first < w->rows; first += w->block) {
        npy_intp rows = w->rows - first < w->block ? w->rows - first : w->block;
        npy_intp columns = F(scores)(w, head, first, rows, keys, weights);
        REAL *restrict out = (REAL *)head->out + first * w->value_width;
        REAL *sums = (REAL *)head->sums + first;
        REAL totals[MOST_ROWS];
        for (npy_intp r = 0; r < rows; r++) {
            REAL top = F(largest)(weights + r * w->wide, columns);
            top = top == -(REAL)INFINITY ? 0 : top;
            REAL total = F(raise)(weights + r * w->wide, columns, top);
            sums[r] = total == 0 ? (REAL)INFINITY : (REAL)log((double)total) + top;
            totals[r] = total == 0 ? 1 : total;
        }
        F(multiply_strips)(weights, w->wide, 1, values, w->columns, rows, columns, w->value_width,
                           out, w->value_width, 0);
        for (npy_intp r = 0; r < rows; r++, out += w->value_width) {
#pragma omp simd
            for (npy_intp j = 0; j < w->value_width; j++) {
                out[j] /= totals[r];
            }
        }
    }
}

/* weights * (slopes - the sum of grad * out in the row) * scale: the gradients of the products */
static void F(slopes_of_scores)(const Attention *w, const REAL *restrict grad,
                                const REAL *restrict out, const REAL *restrict weights,
                                REAL *restrict slopes, npy_intp columns)
{
    REAL sum = 0, scale = (REAL)w->scale;
#pragma omp simd reduction(+ : sum)
    for (npy_intp j = 0; j < w->value_width; j++) {
        sum += grad[j] * out[j];
    }
#pragma omp simd
    for (npy_intp i = 0; i < columns; i++) {
        slopes[i] = (slopes[i] - sum) * weights[i] * scale;
    }
}

/* Gradients of one head in query, key and value; any of them may be NULL. */
static void F(attention_backward)(const Attention *w, const Head *head, void *memory)
{
    REAL *keys = memory, *values = keys + w->width * w->wide;
    REAL *key_rows = values + w->value_width * w->wide;
    REAL *query_rows = key_rows + w->columns * w->query_wide;
    REAL *grad_rows = query_rows + w->block * w->query_wide;
    REAL *weights = grad_rows + w->block * w->value_wide, *slopes = weights + w->block * w->wide;
    F(pack_strips)(head->key, 1, w->key.row, w->width, w->columns, keys);
    F(pack_strips)(head->value, 1, w->value.row, w->value_width, w->columns, values);
    F(pack_strips)(head->key, w->key.row, 1, w->columns, w->width, key_rows);
    for (npy_intp first = 0; first < w->rows; first += w->block) {
        npy_intp rows = w->rows - first < w->block ? w->rows - first : w->block;
        npy_intp columns = F(scores)(w, head, first, rows, keys, weights);
        const REAL *grad = (const REAL *)head->grad + first * w->grad.row;
        const REAL *out = (const REAL *)head->out + first * w->result.row;
        for (npy_intp r = 0; r < rows; r++) {
            F(raise)(weights + r * w->wide, columns, ((const REAL *)head->sums)[first + r]);
        }
        if (head->to_value != NULL) {
            F(pack_strips)(grad, w->grad.row, 1, rows, w->value_width, grad_rows);
            F(multiply_strips)(weights, 1, w->wide, grad_rows, rows, columns, rows, w->value_width,
                               head->to_value, w->value_width, 1);
        }
        if (head->to_query == NULL && head->to_key == NULL) {
            continue;
        }
        F(multiply_strips)(grad, w->grad.row, 1, values, w->value_width, rows, w->value_width,
                           columns, slopes, w->wide, 0);
        for (npy_intp r = 0; r < rows; r++) {
            F(slopes_of_scores)(w, grad + r * w->grad.row, out + r * w->result.row,
                                weights + r * w->wide, slopes + r * w->wide, columns);
        }
        if (head->to_query != NULL) {
            F(multiply_strips)(slopes, w->wide, 1, key_rows, w->columns, rows, columns, w->width,
                               (REAL *)head->to_query + first * w->width, w->width, 0);
        }
        if (head->to_key != NULL) {
            F(pack_strips)((const REAL *)head->query + first * w->query.row, w->query.row, 1, rows,
                           w->width, query_rows);
            F(multiply_strips)(slopes, 1, w->wide, query_rows, rows, columns, rows, w->width,
                               head->to_key, w->width, 1);
        }
    }
}

#undef WIDTH
