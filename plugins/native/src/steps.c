/* Steps of optimizers. Each operation is rounded by itself, in the order in which plugrad-cpu calls
   NumPy's functions, so that both give the same bits: here, no compiler may make one instruction of
   a product and a sum. */

#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#include <math.h>

#include "steps.h"

#define REAL float
#define F(name) name##_float
#define ROOT sqrtf
#include "steps_of_kind.h"
#undef REAL
#undef F
#undef ROOT

#define REAL double
#define F(name) name##_double
#define ROOT sqrt
#include "steps_of_kind.h"
