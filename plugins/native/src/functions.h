/* exp, tanh and erf of float32, as straight code that compilers turn into vector instructions.

   Coefficients have the least largest relative error on the interval that is named beside them.
   Of float64, the functions are those of the C library. */

#ifndef PLUGRAD_FUNCTIONS_H
#define PLUGRAD_FUNCTIONS_H

#include <math.h>
#include <stdint.h>

typedef union {
    float number;
    uint32_t bits;
} Bits;

/* A float to which numbers up to 2^21 are added is rounded to an integer, its lowest bits. */
#define ROUNDER 12582912.0f
/* ln 2 in two parts; the products of the first one with exponents are exact. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f

static inline float power_of_two(int32_t exponent)
{
    Bits made;
    made.bits = (uint32_t)(exponent + 127) << 23;
    return made.number;
}

static inline float exp_float(float x)
{
    Bits rounded;
    /* Beyond these the result is inf or 0; nan stays. */
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    rounded.number = x * 1.44269504f + ROUNDER;
    float whole = rounded.number - ROUNDER;
    int32_t n = (int32_t)(rounded.bits - 0x4B400000u);
    float r = (x - whole * LN2_HIGH) - whole * LN2_LOW;
    /* (exp(r) - 1 - r) / r^2 for |r| up to ln 2 / 2: 7.4e-9 of exp(r). */
    float q = 1.39012863e-3f;
    q = q * r + 8.36314633e-3f;
    q = q * r + 4.16668542e-2f;
    q = q * r + 0.166665778f;
    q = q * r + 0.5f;
    /* In two steps, so that neither power is too large or too small for a float. */
    int32_t half = n >> 1;
    return (q * r * r + r + 1.0f) * power_of_two(half) * power_of_two(n - half);
}

static inline float tanh_float(float x)
{
    float a = fabsf(x);
    float t = x * x;
    /* (tanh(a) - a) / a^3 in t = a^2, for a up to 0.625: 1.7e-8 of tanh(a). */
    float p = -6.09694095e-3f;
    p = p * t + 2.09973566e-2f;
    p = p * t - 5.38509525e-2f;
    p = p * t + 0.133327708f;
    p = p * t - 0.333333284f;
    float near = p * t * a + a;
    float far = 1.0f - 2.0f / (exp_float(2.0f * a) + 1.0f);
    return copysignf(a < 0.625f ? near : far, x);
}

static inline float erf_float(float x)
{
    float a = fabsf(x);
    float t = x * x;
    /* erf(a) / a - 1 in t = a^2, for a up to 0.9: 1.2e-8 of erf(a). */
    float p = -6.09035837e-4f;
    p = p * t + 5.01196226e-3f;
    p = p * t - 2.67789084e-2f;
    p = p * t + 0.112821408f;
    p = p * t - 0.376125246f;
    p = p * t + 0.128379151f;
    float near = p * a + a;
    /* log(1 - erf(a)) for a from 0.9 to 4: 1.7e-9 of erf(a). Beyond, the nearest float is 1. */
    float b = a > 4.0f ? 4.0f : a;
    float q = 1.98219640e-4f;
    q = q * b - 3.06549040e-3f;
    q = q * b + 2.23152135e-2f;
    q = q * b - 0.104113683f;
    q = q * b - 0.636976063f;
    q = q * b - 1.12779725f;
    q = q * b - 1.66447615e-4f;
    float far = 1.0f - exp_float(q);
    return copysignf(a < 0.9f ? near : far, x);
}

#endif
