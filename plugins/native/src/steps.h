/* The loops of optimizers' steps: steps.c has them for float32 and float64. */

#ifndef PLUGRAD_STEPS_H
#define PLUGRAD_STEPS_H

#include <stddef.h>

typedef struct {
    double lr, momentum, dampening, weight_decay;
    int nesterov, maximize;
} SgdNumbers;

typedef struct {
    double beta1, beta2, decay, weight_decay;
    int maximize;
} AdamNumbers;

/* Parameter, gradient and running mean, which is NULL without momentum; so many elements. */
void sgd_step_float(void *p, const void *grad, void *mean, ptrdiff_t n, const SgdNumbers *numbers);
void sgd_step_double(void *p, const void *grad, void *mean, ptrdiff_t n, const SgdNumbers *numbers);

/* Parameter, gradient, running means of it and of its square, and the largest of the latter, which
   is NULL without amsgrad. */
void adam_step_float(void *p, const void *grad, void *mean, void *square, void *largest,
                     ptrdiff_t n, double rate, double epsilon, const AdamNumbers *numbers);
void adam_step_double(void *p, const void *grad, void *mean, void *square, void *largest,
                      ptrdiff_t n, double rate, double epsilon, const AdamNumbers *numbers);

#endif
