/* exp and tanh, and erf and log of float32, as straight code that compilers turn into vector
   instructions. Those of float64 are the C library's.

   Coefficients have the least largest relative error on the interval that is named beside them, or
   nearly so. */

#ifndef PLUGRAD_FUNCTIONS_H
#define PLUGRAD_FUNCTIONS_H

#include <math.h>
#include <stdint.h>

typedef union {
    float number;
    uint32_t bits;
} Bits;

typedef union {
    double number;
    uint64_t bits;
} WideBits;

/* A float to which numbers up to 2^21 are added is rounded to an integer, its lowest bits. */
#define ROUNDER 12582912.0f
#define WIDE_ROUNDER 6755399441055744.0
/* ln 2 in two parts; the products of the first one with exponents are exact. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f

static inline float power_of_two(int32_t exponent)
{
    Bits made;
    made.bits = (uint32_t)(exponent + 127) << 23;
    return made.number;
}

/* exp(x) / 2^n; n lies near x / ln 2. */
static inline float exp_part_float(float x, int32_t *n)
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
    return q * r * r + r + 1.0f;
}

static inline float exp_float(float x)
{
    /* Beyond these the result is inf or 0; nan stays. */
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    int32_t n;
    float part = exp_part_float(x, &n);
    /* In two steps, so that neither power is too large or too small for a float. */
    int32_t half = n >> 1;
    return part * power_of_two(half) * power_of_two(n - half);
}

/* The normal distribution function. */
static inline float normal_float(float x)
{
    float a = fabsf(x);
    /* log2(2 normal(-a)) / a for a up to 5.5: 1.9e-8 of 1, and 1e-5 of normal(-a). Beyond, the
       nearest float to 1 - normal(-a) is 1. */
    float q = 1.89440562e-7f;
    q = q * a - 4.54510880e-6f;
    q = q * a + 4.34711212e-5f;
    q = q * a - 1.81267052e-4f;
    q = q * a - 1.73502514e-4f;
    q = q * a + 7.12370779e-3f;
    q = q * a - 5.25387563e-2f;
    q = q * a - 0.459195584f;
    q = q * a - 1.15110636f;
    float exponent = q * a;
    Bits rounded, below;
    rounded.number = exponent + ROUNDER;
    float r = exponent - (rounded.number - ROUNDER);
    /* 2^r / 2 for |r| up to 1/2: 3.0e-9 of it. */
    float p = 7.66323588e-5f;
    p = p * r + 6.69540313e-4f;
    p = p * r + 4.80925292e-3f;
    p = p * r + 2.77517997e-2f;
    p = p * r + 0.120113239f;
    p = p * r + 0.346573591f;
    below.number = p * r + 0.5f;
    below.bits += rounded.bits << 23; /* times 2 to the power of the integer, which is small */
    float found = a < 5.5f ? below.number : 0.0f;
    return x < 0.0f ? found : 1.0f - found;
}

static inline double normal_double(double x)
{
    return 0.5 * (1.0 + erf(x * 0.70710678118654752440));
}

/* log(m 2^n) = log(m) + n ln 2, for m from sqrt(1/2) to sqrt(2). */
static inline float log_float(float x)
{
    Bits given, m;
    int small = x < 1.17549435e-38f; /* not in the form 1.5 2^n, unless negative or 0 */
    given.number = small ? x * 8388608.0f : x;
    int32_t n = (int32_t)(given.bits - 0x3F3504F3u) >> 23;
    m.bits = given.bits - ((uint32_t)n << 23);
    float f = m.number - 1.0f;
    float whole = (float)(n - (small ? 23 : 0));
    float t = f * f;
    /* (log(1 + f) - f + f^2 / 2) / f^3: 5.9e-9 of log(1 + f). */
    float q = -7.63442984e-2f;
    q = q * f + 0.127615503f;
    q = q * f - 0.131601951f;
    q = q * f + 0.142017625f;
    q = q * f - 0.166233565f;
    q = q * f + 0.200012267f;
    q = q * f - 0.250008211f;
    q = q * f + 0.333333317f;
    float found = q * f * t + whole * LN2_LOW - 0.5f * t + f + whole * LN2_HIGH;
    float edge = x == 0.0f ? -INFINITY : NAN;
    return x > 0.0f ? (x <= 3.40282347e38f ? found : x) : edge;
}

static inline double power_of_two_double(int64_t exponent)
{
    WideBits made;
    made.bits = (uint64_t)(exponent + 1023) << 52;
    return made.number;
}

static inline double exp_double(double x)
{
    WideBits rounded, half;
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    rounded.number = x * 1.4426950408889634 + WIDE_ROUNDER;
    double whole = rounded.number - WIDE_ROUNDER;
    int64_t n = (int64_t)(rounded.bits - 0x4338000000000000u);
    double r = (x - whole * 0.6931471804855391) - whole * 7.4406171100123967e-11;
    /* (exp(r) - 1 - r) / r^2 for |r| up to ln 2 / 2: 1.7e-19 of exp(r). */
    double q = 2.0914686968086877e-9;
    q = q * r + 2.5105217004720745e-8;
    q = q * r + 2.7557273643110295e-7;
    q = q * r + 2.7557255400206424e-6;
    q = q * r + 2.4801587325547741e-5;
    q = q * r + 0.00019841269874820625;
    q = q * r + 0.0013888888888883748;
    q = q * r + 0.0083333333333261351;
    q = q * r + 0.041666666666666667;
    q = q * r + 0.16666666666666671;
    q = q * r + 0.5;
    half.number = whole * 0.5 + WIDE_ROUNDER;
    int64_t part = (int64_t)(half.bits - 0x4338000000000000u);
    return (q * r * r + r + 1.0) * power_of_two_double(part) * power_of_two_double(n - part);
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

static inline double tanh_double(double x)
{
    double a = fabs(x);
    double t = x * x;
    /* (tanh(a) - a) / a^3 in t = a^2, for a up to 0.625: 4.2e-17 of tanh(a). */
    double p = -1.724487449484433e-5;
    p = p * t + 7.959955735264808e-5;
    p = p * t - 0.00023077616269519858;
    p = p * t + 0.00058743728600943819;
    p = p * t - 0.001455309297534642;
    p = p * t + 0.0035920589774734553;
    p = p * t - 0.0088632298309257087;
    p = p * t + 0.021869488260559115;
    p = p * t - 0.053968253961395571;
    p = p * t + 0.13333333333326658;
    p = p * t - 0.33333333333333323;
    double near = p * t * a + a;
    double far = 1.0 - 2.0 / (exp_double(2.0 * a) + 1.0);
    return copysign(a < 0.625 ? near : far, x);
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
