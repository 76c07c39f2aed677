/* The loops, for float32 and for float64. */

#ifndef PLUGRAD_KINDS_H
#define PLUGRAD_KINDS_H

#include "arrays.h"
#include "functions.h"

/* Elements that are added up in their own dtype; what comes out is added up in double. */
#define BLOCK 512
#define LONG_BLOCK 4096
#define LANES 32 /* sums.h adds them up by name */
/* Rows of which columns are added up in their own dtype, and columns at a time. */
#define ROWS 32
#define COLUMNS 512
#define WIDE 1024 /* the same for sums alone, which keep less */

/* A sum of sums of blocks, and what rounding lost of it (Neumaier 1974). */
typedef struct {
    double sum, lost;
} Total;

static inline void add(Total *total, double part)
{
    double next = total->sum + part;
    int larger = fabs(total->sum) >= fabs(part);
    total->lost += larger ? (total->sum - next) + part : (part - next) + total->sum;
    total->sum = next;
}

static inline double total_of(Total total)
{
    /* What an infinite sum lost is nan. */
    return isfinite(total.lost) ? total.sum + total.lost : total.sum;
}

/* Elements of a small matrix that is copied, its rows filled up. */
#define PACKED 4096
#define TALL 6 /* rows of a product at a time: as many as there are registers for */

/* beta * add + alpha * a @ b; steps count elements, and out is contiguous. */
typedef struct {
    const void *a, *b, *add;
    void *out;
    npy_intp rows, inner, columns;
    npy_intp a_rows, a_columns, b_rows, b_columns, add_rows, add_columns;
    double alpha, beta;
} Product;

/* A step of a recurrent layer of `rows` sequences; see recurrent.h. */
typedef struct {
    npy_intp rows, width;
    const void *product, *gates, *before, *grad;
    void *planes, *out, *to_hidden, *to_cell, *to_product;
} RecurrentStep;

/* How far apart the rows of a matrix are, in elements. */
typedef struct {
    npy_intp row;
} Steps;

/* Attention: the sizes that all heads share. Those called wide are rounded up to whole lines of the
   cache, `wide` is that of `columns`; `block` rows of the weights are in memory at a time. Steps of
   masks are in bytes. */
typedef struct {
    npy_intp rows, columns, width, value_width, wide, query_wide, value_wide, block;
    npy_intp mask_row, mask_column;
    Steps query, key, value, grad, result;
    int causal, hides; /* whether a mask says what takes part, and adds no numbers */
    double scale;
} Attention;

/* The arrays of one head. */
typedef struct {
    const void *query, *key, *value, *grad;
    const char *mask;
    void *out, *sums, *to_query, *to_key, *to_value;
} Head;

#define MOST_ROWS (11 * TALL)
#define WEIGHTS (1 << 15)
#define HEIGHT 256 /* rows of a strip that stay in the first cache */

#define REAL float
#define INTEGER npy_int32
#define F(name) name##_float
#define EXP exp_float
#define TANH tanh_float
#define ERF erf_float
#define LOG log_float
#define SQRT sqrtf
#define ABS fabsf
#include "sums.h"
#include "rows.h"
#include "elementwise.h"
#include "pairs.h"
#include "products.h"
#include "channels.h"
#include "groups.h"
#include "windows.h"
#include "recurrent.h"
#include "attention.h"
#undef REAL
#undef INTEGER
#undef F
#undef EXP
#undef TANH
#undef ERF
#undef LOG
#undef SQRT
#undef ABS

#define REAL double
#define INTEGER npy_int64
#define F(name) name##_double
#define EXP exp_double
#define TANH tanh_double
#define ERF erf
#define LOG log
#define SQRT sqrt
#define ABS fabs
#include "sums.h"
#include "rows.h"
#include "elementwise.h"
#include "pairs.h"
#include "products.h"
#include "channels.h"
#include "groups.h"
#include "windows.h"
#include "recurrent.h"
#include "attention.h"

#endif
