/* The loops, for float32 and for float64. */

#ifndef PLUGRAD_KINDS_H
#define PLUGRAD_KINDS_H

#include "arrays.h"
#include "functions.h"

/* Elements that are added up in their own dtype; what comes out is added up in double. */
#define BLOCK 512
#define LANES 32 /* sums.h adds them up by name */
/* Rows of which columns are added up in their own dtype, and columns at a time. */
#define ROWS 32
#define COLUMNS 512

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

/* beta * add + alpha * a @ b; steps count elements, and out is contiguous. */
typedef struct {
    const void *a, *b, *add;
    void *out;
    npy_intp rows, inner, columns;
    npy_intp a_rows, a_columns, b_rows, b_columns, add_rows, add_columns;
    double alpha, beta;
} Product;

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
#include "windows.h"
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
#include "windows.h"

#endif
