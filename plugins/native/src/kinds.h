/* The loops, for float32 and for float64. */

#ifndef PLUGRAD_KINDS_H
#define PLUGRAD_KINDS_H

#include "arrays.h"
#include "functions.h"

/* Elements that are added up in their own dtype; what comes out is added up in double. */
#define BLOCK 512
/* Rows of which columns are added up in their own dtype, and columns at a time. */
#define ROWS 32
#define COLUMNS 128

#define REAL float
#define F(name) name##_float
#define EXP exp_float
#define TANH tanh_float
#define ERF erf_float
#include "sums.h"
#include "rows.h"
#include "elementwise.h"
#undef REAL
#undef F
#undef EXP
#undef TANH
#undef ERF

#define REAL double
#define F(name) name##_double
#define EXP exp
#define TANH tanh
#define ERF erf
#include "sums.h"
#include "rows.h"
#include "elementwise.h"

#endif
