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

/* exp(x) - 1 = 2^n * (1 + rest) - 1, for x from -104 to 89; gives `rest` and n. */
static inline float reduced_exp(float x, int32_t *n)
{
    Bits rounded;
    rounded.number = x * 1.44269504f + ROUNDER;
    float whole = rounded.number - ROUNDER;
    *n = (int32_t)(rounded.bits - 0x4B400000u);
    float r = (x - whole * LN2_HIGH) - whole * LN2_LOW;
    /* (exp(r) - 1 - r) / r^2 for |r| up to ln 2 / 2: 7.4e-9 of exp(r). */
    float q = 1.39012863e-3f;
    q = q * r + 8.36314633e-3f;
    q = q * r + 4.16668542e-2f;
    q = q * r + 0.166665778f;
    q = q * r + 0.5f;
    return q * r * r + r;
}

static inline float exp_float(float x)
{
    int32_t n;
    /* Beyond these the result is inf or 0; nan stays. */
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float rest = reduced_exp(x, &n);
    /* In two steps, so that neither power is too large or too small for a float. */
    int32_t half = n >> 1;
    return (1.0f + rest) * power_of_two(half) * power_of_two(n - half);
}

static inline float tanh_float(float x)
{
    int32_t n;
    /* With e = exp(2 |x|) - 1, it is e / (e + 2); from 10 on that is 1. */
    float twice = 2.0f * fabsf(x);
    twice = twice > 20.0f ? 20.0f : twice;
    float rest = reduced_exp(twice, &n);
    float power = power_of_two(n);
    float e = power * rest + (power - 1.0f);
    return copysignf(e / (e + 2.0f), x);
}

static inline float erf_float(float x)
{
    float a = fabsf(x);
    float t = x * x;
    /* erf(a) / a in t = a^2 up to 15.5: 2e-8. */
    float p = 2.03632044e-6f;
    p = p * t + 2.84760579e-4f;
    p = p * t + 3.78947752e-3f;
    p = p * t + 5.28196618e-2f;
    p = p * t + 0.191049501f;
    p = p * t + 1.12837911f;
    float q = 3.79432167e-5f;
    q = q * t + 1.16710749e-3f;
    q = q * t + 1.50173540e-2f;
    q = q * t + 0.114362106f;
    q = q * t + 0.502645910f;
    q = q * t + 1.0f;
    /* Beyond, the nearest float is 1. */
    float found = a > 3.9192059f ? 1.0f : a * p / q;
    return copysignf(found, x);
}

#endif
