# Generated from operators' YAML files by `plugrad stub`; not to be edited.
# ruff: noqa
# fmt: off
import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from plugrad import Generator, Tensor, device, dtype

Number = builtins.int | builtins.float | builtins.complex
DeviceLike = device | str
DType = dtype

def hyp0f1(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The confluent hypergeometric limit function 0F1(; v; z).

    `z` real or complex, `v` real.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * (hyp0f1(v + 1, z) / v).conj()

    Source: DLMF 16.2.1; derivative by z: DLMF 16.3.1

    Schema:

        hyp0f1(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hyp0f1(1.5, plugrad.tensor([0.0, 1.0]))
    tensor([1.0000, 1.8134])
    """
def hyp1f1(a: Tensor | Number, b: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Kummer's confluent hypergeometric function 1F1(a; b; x).

    `x` real or complex, `a` and `b` real.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        x: grad * (a / b * hyp1f1(a + 1, b + 1, x)).conj()

    Source: DLMF 13.2.2; derivative by x: DLMF 13.3.15

    Schema:

        hyp1f1(Tensor a, Tensor b, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hyp1f1(1, 2, plugrad.tensor([0.0, 1.0]))
    tensor([1.0000, 1.7183])
    """
def hyp2f1(a: Tensor | Number, b: Tensor | Number, c: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Gauss' hypergeometric function 2F1(a, b; c; z).

    `z` real or complex, with a cut from 1 to infinity; `a`, `b` and `c` real.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        c: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        c: not_implemented
        z: grad * (a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)).conj()

    Source: DLMF 15.2.1; derivative by z: DLMF 15.5.1

    Schema:

        hyp2f1(Tensor a, Tensor b, Tensor c, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hyp2f1(1, 1, 2, plugrad.tensor([0.0, 0.5]))
    tensor([1.0000, 1.3863])
    """
def hyperu(a: Tensor | Number, b: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Tricomi's confluent hypergeometric function U(a, b, x).

    Real, for x > 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        x: grad * -a * hyperu(a + 1, b + 1, x)

    Source: DLMF 13.2.6; derivative by x: DLMF 13.3.22

    Schema:

        hyperu(Tensor a, Tensor b, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hyperu(1, 2, plugrad.tensor([0.5, 1.0]))
    tensor([2., 1.])
    """
def wright_bessel(a: Tensor | Number, b: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Wright's generalized Bessel function: the sum of x^k / (k! gamma(a k + b)).

    Real, for a, b, x >= 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        x: grad * wright_bessel(a, a + b, x)

    Source: DLMF 10.46.1; derivative by x: term by term

    Schema:

        wright_bessel(Tensor a, Tensor b, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.wright_bessel(1, 1.5, plugrad.tensor([0.0, 1.0]))
    tensor([1.1284, 2.0462])
    """

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The entropy -x log(x) of each element; 0 at 0 and -inf below.

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * -(input.log() + 1)

    Source: derivative: product rule; at 0 its limit, inf

    Schema:

        entr(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.entr(plugrad.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.3466, -0.0000])
    """
def rel_entr(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The relative entropy x log(x / y); 0 where x = 0 and y >= 0, inf outside of x, y > 0.

    Real. Its sum is the Kullback-Leibler divergence of two distributions.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * ((input / other).log() + 1)
        other: grad * -quotient_or_zero(input, other)

    Source: derivative: product rule

    Schema:

        rel_entr(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.rel_entr(plugrad.tensor([0.0, 0.5, 1.0]), 0.5)
    tensor([0.0000, 0.0000, 0.6931])
    """
def kl_div(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """x log(x / y) - x + y: like `rel_entr`, and never negative; y where x = 0, inf outside of x, y >= 0.

    Real. SciPy's function of the name; the loss is `plugrad.nn.functional.kl_div`.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (input / other).log()
        other: grad * (1 - quotient_or_zero(input, other))

    Source: derivative: product rule

    Schema:

        kl_div(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.kl_div(plugrad.tensor([0.0, 0.5, 1.0]), 0.5)
    tensor([0.5000, 0.0000, 0.1931])
    """
def xlog1py(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """x log(1 + y), accurate for small y; 0 where x = 0, unless y is nan.

    Real or complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * log1p_where(input, other)
        other: grad * input.conj() / (other + 1).conj()

    Source: derivative: product rule; at x = 0, y <= -1 it is 0, as PyTorch has it

    Schema:

        xlog1py(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.xlog1py(plugrad.tensor([0.0, 1.0, 2.0]), plugrad.tensor([-1.0, 1.0, 1e-6]))
    tensor([0.0000e+00, 6.9315e-01, 2.0000e-06])
    """
def powm1(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """x to the power of y, less 1, accurate where the power is close to 1.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * other * input ** (other - 1)
        other: grad * xlogy(input**other, input)

    Source: derivative: DLMF 4.7.10

    Schema:

        powm1(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.powm1(plugrad.tensor([1.0, 2.0]), 1e-5)
    tensor([0.0000e+00, 6.9315e-06])
    """
def cbrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The real cube root of each element, also of negative ones.

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad / (3 * result * result)

    Source: derivative: DLMF 4.7.10

    Schema:

        cbrt(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.cbrt(plugrad.tensor([-8.0, 1.0, 27.0]))
    tensor([-2.,  1.,  3.])
    """
def exp10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """10 to the power of each element.

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * result * 2.302585092994046

    Source: derivative: DLMF 4.7.9

    Schema:

        exp10(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.exp10(plugrad.tensor([-1.0, 0.0, 2.0]))
    tensor([  0.1000,   1.0000, 100.0000])
    """
def exprel(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(exp(x) - 1) / x, accurate near 0, where it is 1.

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * hyp1f1(2, 3, input) / 2

    Source: exprel(x) = 1F1(1; 2; x), DLMF 13.6.2; derivative: DLMF 13.3.15

    Schema:

        exprel(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.exprel(plugrad.tensor([0.0, 1e-6, 1.0]))
    tensor([1.0000, 1.0000, 1.7183])
    """
def cosm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """cos(x) - 1, accurate near 0.

    Real or complex.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Source: -2 sin(x / 2)^2

    Schema:

        cosm1(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.cosm1(plugrad.tensor([0.0, 1e-4, 3.0]))
    tensor([-0.0000e+00, -5.0000e-09, -1.9900e+00])
    """
def log_expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the logistic function, log(1 / (1 + exp(-x))).

    Real.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Source: -softplus(-x)

    Schema:

        log_expit(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.log_expit(plugrad.tensor([-1000.0, 0.0, 3.0]))
    tensor([-1.0000e+03, -6.9315e-01, -4.8587e-02])
    """
def boxcox(x: Tensor | Number, lmbda: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Box-Cox transform (x^lmbda - 1) / lmbda; log(x) where lmbda = 0.

    Real; nan for x < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        lmbda: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * x ** (lmbda - 1)
        lmbda: grad * boxcox_by_order(x.log(), lmbda)

    Source: derivative by lmbda: log(x)^2 1F1(2; 3; lmbda log(x)) / 2, from DLMF 13.6.2 and 13.3.15

    Schema:

        boxcox(Tensor x, Tensor lmbda) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.boxcox(plugrad.tensor([1.0, 2.0, 4.0]), 0.5)
    tensor([0.0000, 0.8284, 2.0000])
    """
def boxcox1p(x: Tensor | Number, lmbda: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Box-Cox transform of 1 + x, accurate for small x.

    Real; nan for x < -1.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        lmbda: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * xlog1py(lmbda - 1, x).exp()
        lmbda: grad * boxcox_by_order(x.log1p(), lmbda)

    Source: as for boxcox

    Schema:

        boxcox1p(Tensor x, Tensor lmbda) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.boxcox1p(plugrad.tensor([0.0, 1.0, 3.0]), 0.5)
    tensor([0.0000, 0.8284, 2.0000])
    """
def inv_boxcox(y: Tensor | Number, lmbda: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `boxcox`: (1 + lmbda y)^(1 / lmbda); exp(y) where lmbda = 0.

    Real; nan for lmbda y < -1.

    Operands are broadcast; integers give the default dtype.

    Args:
        y: a tensor
        lmbda: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        y: grad * result / (1 + lmbda * y)
        lmbda: grad * result * y * y * log1p_quotient_derivative(lmbda * y)

    Source: derivative: of exp(y q(lmbda y)) with q(u) = log(1 + u) / u

    Schema:

        inv_boxcox(Tensor y, Tensor lmbda) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.inv_boxcox(plugrad.tensor([0.0, 1.0, 2.0]), 0.5)
    tensor([1.0000, 2.2500, 4.0000])
    """
def inv_boxcox1p(y: Tensor | Number, lmbda: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `boxcox1p`.

    Real; nan for lmbda y < -1.

    Operands are broadcast; integers give the default dtype.

    Args:
        y: a tensor
        lmbda: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        y: grad * (result + 1) / (1 + lmbda * y)
        lmbda: grad * (result + 1) * y * y * log1p_quotient_derivative(lmbda * y)

    Source: as for inv_boxcox

    Schema:

        inv_boxcox1p(Tensor y, Tensor lmbda) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.inv_boxcox1p(plugrad.tensor([0.0, 1.0, 2.0]), 0.5)
    tensor([0.0000, 1.2500, 3.0000])
    """
def lambertw(input: Tensor, k: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Lambert's function: the branch `k` of W in W exp(W) = z.

    Complex, every branch. Real, only the branches that are real somewhere: k = 0 for
    x >= -1/e and k = -1 for -1/e <= x < 0; nan elsewhere.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        k: an int, default 0
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad / (input + result.exp()).conj()

    Source: DLMF 4.13.1; derivative: DLMF 4.13.4

    Schema:

        lambertw(Tensor self, int k=0) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.lambertw(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([0.0000, 0.5671, 1.7455])
    """
def wrightomega(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Wright's function: the solution of w + log(w) = z.

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (result / (1 + result)).conj()

    Source: derivative: DLMF 4.13.4 with z = exp(x)

    Schema:

        wrightomega(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.wrightomega(plugrad.tensor([-1.0, 1.0, 3.0]))
    tensor([0.2785, 1.0000, 2.2079])
    """

def loggamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The principal branch of the logarithm of the gamma function.

    Complex, with a cut along the negative axis; real, with nan for x < 0.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * digamma(input).conj()

    Source: DLMF 5.2.1; derivative: DLMF 5.2.2

    Schema:

        loggamma(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.loggamma(plugrad.tensor([1 + 1j, -0.5 + 0.1j]))
    tensor([-0.6509-0.3016j,  1.2216-3.1378j])
    """
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithmic derivative of the gamma function.

    Real or complex; nan at -1, -2, ..., and -inf at 0.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * polygamma(1, input).conj()

    Source: DLMF 5.2.2; derivative: DLMF 5.15.1

    Schema:

        digamma(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.digamma(plugrad.tensor([0.5, 1.0, 5.0]))
    tensor([-1.9635, -0.5772,  1.5061])
    """
def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Alias of `digamma`.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Schema:

        psi(Tensor self) -> Tensor
    """
def polygamma(n: builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of `digamma`.

    Real or complex; RuntimeError for n < 0.

    Any shape; integers give the default dtype.

    Args:
        n: an int
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * polygamma(n + 1, input).conj()

    Source: DLMF 5.15; derivative: by definition

    Schema:

        polygamma(int n, Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.polygamma(1, plugrad.tensor([0.5, 1.0, 5.0]))
    tensor([4.9348, 1.6449, 0.2213])
    """
def gamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gamma function.

    Real or complex; nan at -1, -2, ...

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (result * digamma(input)).conj()

    Source: DLMF 5.2.1; derivative: DLMF 5.2.2

    Schema:

        gamma(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.gamma(plugrad.tensor([0.5, 1.0, 5.0]))
    tensor([ 1.7725,  1.0000, 24.0000])
    """
def rgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The reciprocal of the gamma function, which is entire: 0 at 0, -1, -2, ...

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * rgamma_derivative(input).conj()

    Source: DLMF 5.2.1; derivative: DLMF 5.2.2, left of 1/2 by the reflection formula DLMF 5.5.3

    Schema:

        rgamma(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.rgamma(plugrad.tensor([-1.0, 0.5, 5.0]))
    tensor([0.0000, 0.5642, 0.0417])
    """
def gammasgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of the gamma function: gamma(x) = gammasgn(x) exp(gammaln(x)).

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: zeros_like(grad)

    Source: derivative: 0 where there is one

    Schema:

        gammasgn(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.gammasgn(plugrad.tensor([-1.5, -0.5, 2.0]))
    tensor([ 1., -1.,  1.])
    """
def gammainc(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The regularized lower incomplete gamma function P(a, x), with a = `input`, x = `other`.

    Real, for a >= 0 and x >= 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: not_implemented
        other: grad * gamma_density(input, other)

    Source: DLMF 8.2.4; derivative by x: DLMF 8.8.13

    Schema:

        gammainc(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.gammainc(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.5, 3.0]))
    tensor([0.3935, 0.8009])
    """
def gammaincc(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Real, for a >= 0 and x >= 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: not_implemented
        other: -grad * gamma_density(input, other)

    Source: DLMF 8.2.4; derivative by x: DLMF 8.8.13

    Schema:

        gammaincc(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.gammaincc(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.5, 3.0]))
    tensor([0.6065, 0.1991])
    """
def gammaincinv(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `gammainc`: the x with P(a, x) = y, for a = `input`, y = `other`.

    Real, for a > 0 and 0 <= y <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: not_implemented
        other: grad * (lgamma(input) + result - log_of_power(result, input - 1)).exp()

    Source: derivative by y: that of the inverse function, DLMF 8.8.13

    Schema:

        gammaincinv(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.gammaincinv(plugrad.tensor([1.0, 2.0]), 0.5)
    tensor([0.6931, 1.6783])
    """
def gammainccinv(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `gammaincc`: the x with Q(a, x) = y, for a = `input`, y = `other`.

    Real, for a > 0 and 0 <= y <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: not_implemented
        other: -grad * (lgamma(input) + result - log_of_power(result, input - 1)).exp()

    Source: derivative by y: that of the inverse function, DLMF 8.8.13

    Schema:

        gammainccinv(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.gammainccinv(plugrad.tensor([1.0, 2.0]), 0.25)
    tensor([1.3863, 2.6926])
    """
def beta(a: Tensor | Number, b: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The beta function B(a, b) = gamma(a) gamma(b) / gamma(a + b).

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: grad * result * (digamma(a) - digamma(a + b))
        b: grad * result * (digamma(b) - digamma(a + b))

    Source: DLMF 5.12.1; derivative: DLMF 5.2.2

    Schema:

        beta(Tensor a, Tensor b) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.beta(plugrad.tensor([1.0, 2.0]), 3)
    tensor([0.3333, 0.0833])
    """
def betaln(a: Tensor | Number, b: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the beta function.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: grad * (digamma(a) - digamma(a + b))
        b: grad * (digamma(b) - digamma(a + b))

    Source: DLMF 5.12.1; derivative: DLMF 5.2.2

    Schema:

        betaln(Tensor a, Tensor b) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.betaln(plugrad.tensor([1.0, 200.0]), 300)
    tensor([  -5.7038, -337.9801])
    """
def betainc(a: Tensor | Number, b: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The regularized incomplete beta function I_x(a, b).

    Real, for a, b > 0 and 0 <= x <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        x: grad * (log_of_power(x, a - 1) + xlog1py(b - 1, -x) - betaln(a, b)).exp()

    Source: DLMF 8.17.2; derivative by x: DLMF 8.17.1

    Schema:

        betainc(Tensor a, Tensor b, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.betainc(2, 3, plugrad.tensor([0.0, 0.25, 1.0]))
    tensor([0.0000, 0.2617, 1.0000])
    """
def betaincc(a: Tensor | Number, b: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The complement 1 - I_x(a, b) of `betainc`, accurate where it is small.

    Real, for a, b > 0 and 0 <= x <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        x: -grad * (log_of_power(x, a - 1) + xlog1py(b - 1, -x) - betaln(a, b)).exp()

    Source: DLMF 8.17.4; derivative by x: DLMF 8.17.1

    Schema:

        betaincc(Tensor a, Tensor b, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.betaincc(2, 3, plugrad.tensor([0.0, 0.25, 1.0]))
    tensor([1.0000, 0.7383, 0.0000])
    """
def betaincinv(a: Tensor | Number, b: Tensor | Number, y: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `betainc`: the x with I_x(a, b) = y.

    Real, for a, b > 0 and 0 <= y <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        y: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        y: grad * (betaln(a, b) - log_of_power(result, a - 1) - xlog1py(b - 1, -result)).exp()

    Source: derivative by y: that of the inverse function, DLMF 8.17.1

    Schema:

        betaincinv(Tensor a, Tensor b, Tensor y) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.betaincinv(2, 3, plugrad.tensor([0.25, 0.5]))
    tensor([0.2430, 0.3857])
    """
def betainccinv(a: Tensor | Number, b: Tensor | Number, y: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `betaincc`: the x with 1 - I_x(a, b) = y.

    Real, for a, b > 0 and 0 <= y <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        a: a tensor
        b: a tensor
        y: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        a: not_implemented
        b: not_implemented
        y: -grad * (betaln(a, b) - log_of_power(result, a - 1) - xlog1py(b - 1, -result)).exp()

    Source: derivative by y: that of the inverse function, DLMF 8.17.1

    Schema:

        betainccinv(Tensor a, Tensor b, Tensor y) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.betainccinv(2, 3, plugrad.tensor([0.25, 0.5]))
    tensor([0.5437, 0.3857])
    """
def zeta(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's zeta function: the sum of (k + q)^-x over k >= 0, with x = `input`, q = `other`.

    Real, for x > 1; `zeta(x, 1)` is Riemann's.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        other: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: not_implemented
        other: grad * -input * zeta(input + 1, other)

    Source: DLMF 25.11.1; derivative by q: DLMF 25.11.17

    Schema:

        zeta(Tensor self, Tensor other) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.zeta(plugrad.tensor([2.0, 3.0]), 1)
    tensor([1.6449, 1.2021])
    """

class fresnel_results(NamedTuple):
    s: Tensor
    c: Tensor

def _erf_complex(input: Tensor) -> Tensor:
    """The operator plugrad::_erf_complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor

    Derivatives:

        input: 1.1283791670955126 * grad * (-(input * input)).exp().conj()

    Source: DLMF 7.10.1

    Schema:

        _erf_complex(Tensor self) -> Tensor
    """
def _erfc_complex(input: Tensor) -> Tensor:
    """The operator plugrad::_erfc_complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor

    Derivatives:

        input: -1.1283791670955126 * grad * (-(input * input)).exp().conj()

    Source: DLMF 7.10.1

    Schema:

        _erfc_complex(Tensor self) -> Tensor
    """
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to z.

    Real, as `plugrad.erf`, or complex.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Source: DLMF 7.2.1; derivative: DLMF 7.10.1

    Schema:

        erf(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.erf(plugrad.tensor([0.0, 1.0, 1j]))
    tensor([0.0000+0.0000j, 0.8427+0.0000j, 0.0000+1.6504j])
    """
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complementary error function 1 - erf(z), accurate where that is small.

    Real, as `plugrad.erfc`, or complex.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Source: DLMF 7.2.2; derivative: DLMF 7.10.1

    Schema:

        erfc(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.erfc(plugrad.tensor([0.0, 1.0, 5.0]))
    tensor([1.0000e+00, 1.5730e-01, 1.5375e-12])
    """
def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The scaled complementary error function exp(z^2) erfc(z).

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * erfcx_derivative(input, result).conj()

    Source: derivative: product rule and DLMF 7.10.1, far out by DLMF 7.12.1

    Schema:

        erfcx(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.erfcx(plugrad.tensor([0.0, 1.0, 50.0]))
    tensor([1.0000, 0.4276, 0.0113])
    """
def erfi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The imaginary error function -i erf(i z).

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: 1.1283791670955126 * grad * (input * input).exp().conj()

    Source: derivative: DLMF 7.10.1

    Schema:

        erfi(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.erfi(plugrad.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.6150, 1.6504])
    """
def dawsn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Dawson's integral: exp(-z^2) times the integral of exp(t^2) from 0 to z.

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * dawsn_derivative(input, result).conj()

    Source: DLMF 7.2.5; derivative: product rule, far out by DLMF 7.12.1

    Schema:

        dawsn(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.dawsn(plugrad.tensor([0.0, 0.5, 2.0]))
    tensor([0.0000, 0.4244, 0.3013])
    """
def wofz(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Faddeeva's function w(z) = exp(-z^2) erfc(-i z).

    Real or complex; the result is complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * wofz_derivative(input, result).conj()

    Source: DLMF 7.2.3; derivative: DLMF 7.10.2, far out by DLMF 7.12.1

    Schema:

        wofz(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.wofz(plugrad.tensor([0.0, 1.0, 1j]))
    tensor([1.0000+0.0000j, 0.3679+0.6072j, 0.4276+0.0000j])
    """
def voigt_profile(x: Tensor | Number, sigma: Tensor | Number, gamma: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The density of the sum of a normal variable of deviation `sigma` and a Cauchy variable of half
    width `gamma`.

    Real; the derivatives need sigma > 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        sigma: a tensor
        gamma: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x, sigma, gamma: voigt_profile_backward(grad, x, sigma, gamma, result, mask)

    Source: Re w(z) / (sigma sqrt(2 pi)), z = (x + i gamma) / (sigma sqrt(2)), DLMF 7.19.1; derivatives: DLMF 7.10.2

    Schema:

        voigt_profile(Tensor x, Tensor sigma, Tensor gamma) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.voigt_profile(plugrad.tensor([0.0, 1.0]), 1, 0.5)
    tensor([0.2790, 0.2002])
    """
def erfcinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `erfc`.

    Real, for 0 <= y <= 2; nan elsewhere.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: -0.886226925452758 * grad * (result * result).exp()

    Source: DLMF 7.17.1; derivative: that of the inverse function, DLMF 7.10.1

    Schema:

        erfcinv(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.erfcinv(plugrad.tensor([1e-30, 0.5, 1.0]))
    tensor([8.1486, 0.4769, -0.0000])
    """
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The distribution function of the standard normal distribution.

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: 0.3989422804014327 * grad * (input * input * -0.5).exp().conj()

    Source: DLMF 7.20.1; derivative: DLMF 7.10.1

    Schema:

        ndtr(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ndtr(plugrad.tensor([-1.0, 0.0, 2.0]))
    tensor([0.1587, 0.5000, 0.9772])
    """
def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of `ndtr`, accurate far out on the left.

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: 0.7978845608028654 * grad / erfcx(input * -0.7071067811865476).conj()

    Source: derivative: exp(-x^2 / 2) / (sqrt(2 pi) ndtr(x)) = sqrt(2 / pi) / erfcx(-x / sqrt(2))

    Schema:

        log_ndtr(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.log_ndtr(plugrad.tensor([-50.0, 0.0, 2.0]))
    tensor([-1.2548e+03, -6.9315e-01, -2.3013e-02])
    """
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution.

    Real, for 0 <= y <= 1; nan elsewhere.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: 2.5066282746310002 * grad * (result * result * 0.5).exp()

    Source: derivative: that of the inverse function

    Schema:

        ndtri(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ndtri(plugrad.tensor([0.0, 0.5, 0.975]))
    tensor([  -inf, 0.0000, 1.9600])
    """
def ndtri_exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `log_ndtr`.

    Real, for y <= 0; nan elsewhere.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: 2.5066282746310002 * grad * (input + result * result * 0.5).exp()

    Source: derivative: that of the inverse function

    Schema:

        ndtri_exp(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ndtri_exp(plugrad.tensor([-1000.0, -1.0]))
    tensor([-44.6157,  -0.3375])
    """
def owens_t(h: Tensor | Number, a: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Owen's T function: the probability that X > h and 0 < Y < a X, of independent normal X, Y.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        h: a tensor
        a: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        h: -0.19947114020071635 * grad * (h * h * -0.5).exp() * erf(a * h * 0.7071067811865476)
        a: 0.15915494309189535 * grad * (h * h * (1 + a * a) * -0.5).exp() / (1 + a * a)

    Source: integral of exp(-h^2 (1 + t^2) / 2) / (2 pi (1 + t^2)) from 0 to a; derivatives: under the integral

    Schema:

        owens_t(Tensor h, Tensor a) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.owens_t(plugrad.tensor([0.0, 1.0]), 0.5)
    tensor([0.0738, 0.0431])
    """
def fresnel(input: Tensor) -> fresnel_results:
    """Fresnel's integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to z.

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor

    Derivatives:

        input: fresnel_backward(grads, input)

    Source: DLMF 7.2.7 and 7.2.8; derivatives: the integrands

    Schema:

        fresnel(Tensor self) -> (Tensor s, Tensor c)

    >>> import plugrad
    >>> from plugrad import special
    >>> special.fresnel(plugrad.tensor([0.0, 1.0])).c
    tensor([0.0000, 0.7799])
    """

class sici_results(NamedTuple):
    si: Tensor
    ci: Tensor

class shichi_results(NamedTuple):
    shi: Tensor
    chi: Tensor

def expi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential integral Ei: of exp(t) / t from -inf to x, a principal value for x > 0.

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (input.exp() / input).conj()

    Source: DLMF 6.2.5; derivative: the integrand

    Schema:

        expi(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.expi(plugrad.tensor([-1.0, 0.5, 1.0]))
    tensor([-0.2194,  0.4542,  1.8951])
    """
def exp1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential integral E1: of exp(-t) / t from z to inf.

    Real or complex. A cut along the negative axis.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * -((-input).exp() / input).conj()

    Source: DLMF 6.2.1; derivative: the integrand

    Schema:

        exp1(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.exp1(plugrad.tensor([0.5, 1.0]))
    tensor([0.5598, 0.2194])
    """
def expn(n: builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The generalized exponential integral: of exp(-x t) / t^n from 1 to inf.

    Real, for x >= 0. RuntimeError for n < 0.

    Any shape; integers give the default dtype.

    Args:
        n: an int
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * expn_derivative(n, input)

    Source: DLMF 8.19.3; derivative: DLMF 8.19.13

    Schema:

        expn(int n, Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.expn(2, plugrad.tensor([0.5, 1.0]))
    tensor([0.3266, 0.1485])
    """
def sici(input: Tensor) -> sici_results:
    """The sine and cosine integrals: a tuple (si, ci).

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor

    Derivatives:

        input: sici_backward(grads, input)

    Source: DLMF 6.2.9 and 6.2.13; derivatives: sin(z) / z and cos(z) / z

    Schema:

        sici(Tensor self) -> (Tensor si, Tensor ci)

    >>> import plugrad
    >>> from plugrad import special
    >>> special.sici(plugrad.tensor([0.5, 1.0])).si
    tensor([0.4931, 0.9461])
    """
def shichi(input: Tensor) -> shichi_results:
    """The hyperbolic sine and cosine integrals: a tuple (shi, chi).

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor

    Derivatives:

        input: shichi_backward(grads, input)

    Source: DLMF 6.2.15 and 6.2.16; derivatives: sinh(z) / z and cosh(z) / z

    Schema:

        shichi(Tensor self) -> (Tensor shi, Tensor chi)

    >>> import plugrad
    >>> from plugrad import special
    >>> special.shichi(plugrad.tensor([0.5, 1.0])).shi
    tensor([0.5070, 1.0573])
    """
def spence(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Spence's function: the integral of log(t) / (1 - t) from 1 to z, the dilogarithm of 1 - z.

    Real, for z >= 0, or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * -log_quotient(input).conj()

    Source: DLMF 25.12.2; derivative: the integrand

    Schema:

        spence(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.spence(plugrad.tensor([0.0, 1.0, 2.0]))
    tensor([ 1.6449,  0.0000, -0.8225])
    """

class airy_results(NamedTuple):
    ai: Tensor
    aip: Tensor
    bi: Tensor
    bip: Tensor

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 0.

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * -bessel_j1(input)

    Source: DLMF 10.2.2; derivative: DLMF 10.6.3

    Schema:

        bessel_j0(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.bessel_j0(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([ 1.0000,  0.7652, -0.2459])
    """
def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 1.

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (bessel_j0(input) - bessel_j1_quotient(input))

    Source: DLMF 10.2.2; derivative: DLMF 10.6.2

    Schema:

        bessel_j1(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.bessel_j1(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([0.0000, 0.4401, 0.0435])
    """
def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 0.

    Real; -inf at 0, nan below.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * -bessel_y1(input)

    Source: DLMF 10.2.3; derivative: DLMF 10.6.3

    Schema:

        bessel_y0(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.bessel_y0(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([  -inf, 0.0883, 0.0557])
    """
def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 1.

    Real; -inf at 0, nan below.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (bessel_y0(input) - result / input)

    Source: DLMF 10.2.3; derivative: DLMF 10.6.2

    Schema:

        bessel_y1(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.bessel_y1(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([   -inf, -0.7812,  0.2490])
    """
def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i0`, scaled: exp(-|x|) I_0(x).

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (i1e(input) - input.sgn() * result)

    Source: derivative: product rule and DLMF 10.29.3

    Schema:

        i0e(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.i0e(plugrad.tensor([0.0, 1.0, 1000.0]))
    tensor([1.0000, 0.4658, 0.0126])
    """
def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i1`, scaled: exp(-|x|) I_1(x).

    Real.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (i0e(input) - i1e_quotient(input) - input.sgn() * result)

    Source: derivative: product rule and DLMF 10.29.2

    Schema:

        i1e(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.i1e(plugrad.tensor([0.0, 1.0, 1000.0]))
    tensor([0.0000, 0.2079, 0.0126])
    """
def k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 0.

    Real; inf at 0, nan below.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * -k1(input)

    Source: DLMF 10.25.3; derivative: DLMF 10.29.3

    Schema:

        k0(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.k0(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([       inf, 4.2102e-01, 1.7780e-05])
    """
def k0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`k0`, scaled: exp(x) K_0(x).

    Real; inf at 0, nan below.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (result - k1e(input))

    Source: derivative: product rule and DLMF 10.29.3

    Schema:

        k0e(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.k0e(plugrad.tensor([0.0, 1.0, 1000.0]))
    tensor([   inf, 1.1445, 0.0396])
    """
def k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 1.

    Real; inf at 0, nan below.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * -(k0(input) + result / input)

    Source: DLMF 10.25.3; derivative: DLMF 10.29.2

    Schema:

        k1(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.k1(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([       inf, 6.0191e-01, 1.8649e-05])
    """
def k1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`k1`, scaled: exp(x) K_1(x).

    Real; inf at 0, nan below.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * (result - k0e(input) - result / input)

    Source: derivative: product rule and DLMF 10.29.2

    Schema:

        k1e(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.k1e(plugrad.tensor([0.0, 1.0, 1000.0]))
    tensor([   inf, 1.6362, 0.0396])
    """
def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Alias of `i0`, PyTorch's name for it.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Schema:

        modified_bessel_i0(Tensor self) -> Tensor
    """
def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Alias of `i1`, PyTorch's name for it.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Schema:

        modified_bessel_i1(Tensor self) -> Tensor
    """
def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Alias of `k0`, PyTorch's name for it.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Schema:

        modified_bessel_k0(Tensor self) -> Tensor
    """
def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Alias of `k1`, PyTorch's name for it.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Schema:

        modified_bessel_k1(Tensor self) -> Tensor
    """
def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Alias of `k0e`, PyTorch's name for it.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Schema:

        scaled_modified_bessel_k0(Tensor self) -> Tensor
    """
def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Alias of `k1e`, PyTorch's name for it.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Schema:

        scaled_modified_bessel_k1(Tensor self) -> Tensor
    """
def jv(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind, of real order `v`.

    `z` real or complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * ((jv(v - 1, z) - jv(v + 1, z)) / 2).conj()

    Source: DLMF 10.2.2; derivative by z: DLMF 10.6.1

    Schema:

        jv(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.jv(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([0.2403, 0.1980])
    """
def yv(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind, of real order `v`.

    `z` real or complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * ((yv(v - 1, z) - yv(v + 1, z)) / 2).conj()

    Source: DLMF 10.2.3; derivative by z: DLMF 10.6.1

    Schema:

        yv(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.yv(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([-1.1025,  0.1584])
    """
def hankel1(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Hankel function of the first kind, of real order `v`.

    `z` real or complex. The result is complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * ((hankel1(v - 1, z) - hankel1(v + 1, z)) / 2).conj()

    Source: DLMF 10.4.3; derivative by z: DLMF 10.6.1

    Schema:

        hankel1(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hankel1(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([0.2403-1.1025j, 0.1980+0.1584j])
    """
def hankel2(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Hankel function of the second kind, of real order `v`.

    `z` real or complex. The result is complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * ((hankel2(v - 1, z) - hankel2(v + 1, z)) / 2).conj()

    Source: DLMF 10.4.3; derivative by z: DLMF 10.6.1

    Schema:

        hankel2(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hankel2(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([0.2403+1.1025j, 0.1980-0.1584j])
    """
def iv(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of real order `v`.

    `z` real or complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * ((iv(v - 1, z) + iv(v + 1, z)) / 2).conj()

    Source: DLMF 10.25.2; derivative by z: DLMF 10.29.1

    Schema:

        iv(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.iv(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([2.9353e-01, 2.5009e+03])
    """
def ive(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, scaled by exp(-|Re z|), of real order `v`.

    `z` real or complex. Not holomorphic.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: ive_backward(grad, v, z, result)

    Source: derivative by z: product rule and DLMF 10.29.1

    Schema:

        ive(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ive(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([0.1080, 0.1135])
    """
def kv(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, of real order `v`.

    `z` real or complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * -((kv(v - 1, z) + kv(v + 1, z)) / 2).conj()

    Source: DLMF 10.25.3; derivative by z: DLMF 10.29.1

    Schema:

        kv(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.kv(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([9.2214e-01, 1.9793e-05])
    """
def kve(v: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, scaled by exp(z), of real order `v`.

    `z` real or complex.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        z: grad * (result - (kve(v - 1, z) + kve(v + 1, z)) / 2).conj()

    Source: derivative by z: product rule and DLMF 10.29.1

    Schema:

        kve(Tensor v, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.kve(1.5, plugrad.tensor([1.0, 10.0]))
    tensor([2.5066, 0.4360])
    """
def spherical_jn(n: builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind, of integer order `n`.

    Real or complex. RuntimeError for n < 0.

    Any shape; integers give the default dtype.

    Args:
        n: an int
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * spherical_jn_derivative(n, input).conj()

    Source: DLMF 10.47.3; derivative: DLMF 10.51.1

    Schema:

        spherical_jn(int n, Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.spherical_jn(2, plugrad.tensor([1.0, 10.0]))
    tensor([0.0620, 0.0779])
    """
def spherical_yn(n: builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the second kind, of integer order `n`.

    Real or complex. RuntimeError for n < 0.

    Any shape; integers give the default dtype.

    Args:
        n: an int
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * spherical_yn_derivative(n, input).conj()

    Source: DLMF 10.47.4; derivative: DLMF 10.51.1

    Schema:

        spherical_yn(int n, Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.spherical_yn(2, plugrad.tensor([1.0, 10.0]))
    tensor([-3.6050, -0.0651])
    """
def spherical_in(n: builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified spherical Bessel function of the first kind, of integer order `n`.

    Real or complex. RuntimeError for n < 0.

    Any shape; integers give the default dtype.

    Args:
        n: an int
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * spherical_in_derivative(n, input).conj()

    Source: DLMF 10.47.7; derivative: DLMF 10.51.4

    Schema:

        spherical_in(int n, Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.spherical_in(2, plugrad.tensor([1.0, 10.0]))
    tensor([7.1563e-02, 8.0397e+02])
    """
def spherical_kn(n: builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified spherical Bessel function of the second kind, of integer order `n`.

    Real or complex. RuntimeError for n < 0.

    Any shape; integers give the default dtype.

    Args:
        n: an int
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * spherical_kn_derivative(n, input).conj()

    Source: DLMF 10.47.9; derivative: DLMF 10.51.4

    Schema:

        spherical_kn(int n, Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.spherical_kn(2, plugrad.tensor([1.0, 10.0]))
    tensor([4.0450e+00, 9.4848e-06])
    """
def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of order 0: sin(z) / z, 1 at 0.

    Real or complex.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Source: DLMF 10.49.3

    Schema:

        spherical_bessel_j0(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.spherical_bessel_j0(plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([ 1.0000,  0.8415, -0.0544])
    """
def airy(input: Tensor) -> airy_results:
    """The Airy functions Ai and Bi with their derivatives: a tuple (ai, aip, bi, bip).

    Real or complex.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor

    Derivatives:

        input: airy_backward(grads, input, result0, result1, result2, result3)

    Source: DLMF 9.2; derivatives: Airy's equation, DLMF 9.2.1

    Schema:

        airy(Tensor self) -> (Tensor ai, Tensor aip, Tensor bi, Tensor bip)

    >>> import plugrad
    >>> from plugrad import special
    >>> special.airy(plugrad.tensor([0.0, 1.0])).ai
    tensor([0.3550, 0.1353])
    """
def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Airy function Ai.

    Real or complex.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Source: DLMF 9.2.2

    Schema:

        airy_ai(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.airy_ai(plugrad.tensor([0.0, 1.0]))
    tensor([0.3550, 0.1353])
    """
def struve(v: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Struve function H of real order `v`.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        x: grad * (struve(v - 1, x) - struve(v + 1, x) + struve_power(v, x)) / 2

    Source: DLMF 11.2.1; derivative by x: DLMF 11.4.24

    Schema:

        struve(Tensor v, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.struve(0, plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([0.0000, 0.5687, 0.1187])
    """
def modstruve(v: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The modified Struve function L of real order `v`.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        v: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        v: not_implemented
        x: grad * (modstruve(v - 1, x) + modstruve(v + 1, x) + struve_power(v, x)) / 2

    Source: DLMF 11.2.2; derivative by x: DLMF 11.4.26

    Schema:

        modstruve(Tensor v, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.modstruve(0, plugrad.tensor([0.0, 1.0, 10.0]))
    tensor([0.0000e+00, 7.1024e-01, 2.8157e+03])
    """

class ellipj_results(NamedTuple):
    sn: Tensor
    cn: Tensor
    dn: Tensor
    ph: Tensor

def ellipk(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complete elliptic integral of the first kind, of the parameter m = k^2.

    Real, for m <= 1; inf at 1.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * elliprd(0, 1, 1 - input) / 6

    Source: DLMF 19.2.8; derivative: that of DLMF 19.25.1, by DLMF 19.18.1

    Schema:

        ellipk(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ellipk(plugrad.tensor([-1.0, 0.0, 0.5]))
    tensor([1.3110, 1.5708, 1.8541])
    """
def ellipkm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`ellipk` of 1 - p, accurate for small p.

    Real, for p >= 0; inf at 0.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * elliprd(0, 1, input) / -6

    Source: derivative: as for ellipk

    Schema:

        ellipkm1(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ellipkm1(plugrad.tensor([1e-30, 0.5]))
    tensor([35.9251,  1.8541])
    """
def ellipe(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complete elliptic integral of the second kind, of the parameter m = k^2.

    Real, for m <= 1.

    Any shape; integers give the default dtype.

    Args:
        input: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * elliprd(0, 1 - input, 1) / -6

    Source: DLMF 19.2.8; derivative: DLMF 19.4.2 in the symmetric form DLMF 19.25.1

    Schema:

        ellipe(Tensor self) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ellipe(plugrad.tensor([-1.0, 0.0, 1.0]))
    tensor([1.9101, 1.5708, 1.0000])
    """
def ellipkinc(phi: Tensor | Number, m: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The elliptic integral of the first kind F(phi, m), of the amplitude in radians and m = k^2.

    Real, for m sin(phi)^2 <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        phi: a tensor
        m: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        phi: grad * (1 - m * phi.sin().square()).rsqrt()
        m: grad * ellipkinc_by_parameter(phi, m)

    Source: DLMF 19.2.4; derivatives: the integrand, and DLMF 19.25.5 by DLMF 19.18.1

    Schema:

        ellipkinc(Tensor phi, Tensor m) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ellipkinc(plugrad.tensor([0.5, 1.0]), 0.5)
    tensor([0.5105, 1.0832])
    """
def ellipeinc(phi: Tensor | Number, m: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The elliptic integral of the second kind E(phi, m), of the amplitude in radians and m = k^2.

    Real, for m sin(phi)^2 <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        phi: a tensor
        m: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        phi: grad * (1 - m * phi.sin().square()).sqrt()
        m: grad * ellipeinc_by_parameter(phi, m)

    Source: DLMF 19.2.5; derivatives: the integrand, and DLMF 19.4.6 in the symmetric form DLMF 19.25.9

    Schema:

        ellipeinc(Tensor phi, Tensor m) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ellipeinc(plugrad.tensor([0.5, 1.0]), 0.5)
    tensor([0.4899, 0.9273])
    """
def ellipj(u: Tensor | Number, m: Tensor | Number) -> ellipj_results:
    """The Jacobian elliptic functions: a tuple (sn, cn, dn, ph), of which ph is the amplitude.

    Real, for 0 <= m <= 1.

    Operands are broadcast; integers give the default dtype.

    Args:
        u: a tensor
        m: a tensor

    Derivatives:

        u: ellipj_by_argument(grads, m, result0, result1, result2)
        m: ellipj_by_parameter(grads, m, result0, result1, result2, result3)

    Source: DLMF 22.2; derivative by u: DLMF 22.13.1; by m: that of u = F(ph, m)

    Schema:

        ellipj(Tensor u, Tensor m) -> (Tensor sn, Tensor cn, Tensor dn, Tensor ph)

    >>> import plugrad
    >>> from plugrad import special
    >>> special.ellipj(plugrad.tensor([0.0, 1.0]), 0.5).sn
    tensor([0.0000, 0.8030])
    """
def elliprc(x: Tensor | Number, y: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Carlson's degenerate elliptic integral RC.

    Real, for x >= 0 and y != 0; complex off the negative axis. The derivatives need y > 0, and are nan elsewhere.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        y: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * (_carlson(x, 0, 0, y, [3, 0, 0, 2]) / -4).conj()
        y: grad * (_carlson(x, 0, 0, y, [1, 0, 0, 4]) / -2).conj()

    Source: DLMF 19.2.17; derivatives: under the integral

    Schema:

        elliprc(Tensor x, Tensor y) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.elliprc(1, plugrad.tensor([1.0, 2.0]))
    tensor([1.0000, 0.7854])
    """
def elliprf(x: Tensor | Number, y: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Carlson's symmetric elliptic integral of the first kind RF.

    Real, for x, y, z >= 0 of which at most one is 0; complex off the negative axis.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        y: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * (elliprd(y, z, x) / -6).conj()
        y: grad * (elliprd(x, z, y) / -6).conj()
        z: grad * (elliprd(x, y, z) / -6).conj()

    Source: DLMF 19.16.1; derivatives: DLMF 19.18.1

    Schema:

        elliprf(Tensor x, Tensor y, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.elliprf(0, 1, plugrad.tensor([1.0, 2.0]))
    tensor([1.5708, 1.3110])
    """
def elliprd(x: Tensor | Number, y: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Carlson's elliptic integral of the second kind RD.

    Real, for x, y >= 0 of which at most one is 0, and z > 0; complex off the negative axis.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        y: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * (_carlson(x, y, z, 0, [3, 1, 3, 0]) * -0.75).conj()
        y: grad * (_carlson(x, y, z, 0, [1, 3, 3, 0]) * -0.75).conj()
        z: grad * (_carlson(x, y, z, 0, [1, 1, 5, 0]) * -2.25).conj()

    Source: DLMF 19.16.5; derivatives: under the integral

    Schema:

        elliprd(Tensor x, Tensor y, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.elliprd(0, 1, plugrad.tensor([1.0, 2.0]))
    tensor([2.3562, 1.0679])
    """
def elliprg(x: Tensor | Number, y: Tensor | Number, z: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Carlson's symmetric elliptic integral of the second kind RG.

    Real, for x, y, z >= 0; complex off the negative axis.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        y: a tensor
        z: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * (_carlson(x, y, z, 0, [3, 1, 1, -2]) / 8).conj()
        y: grad * (_carlson(x, y, z, 0, [1, 3, 1, -2]) / 8).conj()
        z: grad * (_carlson(x, y, z, 0, [1, 1, 3, -2]) / 8).conj()

    Source: DLMF 19.16.3; derivatives: DLMF 19.18.4 with 19.16.9

    Schema:

        elliprg(Tensor x, Tensor y, Tensor z) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.elliprg(0, 1, plugrad.tensor([1.0, 2.0]))
    tensor([0.7854, 0.9550])
    """
def elliprj(x: Tensor | Number, y: Tensor | Number, z: Tensor | Number, p: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Carlson's symmetric elliptic integral of the third kind RJ.

    Real, for x, y, z >= 0 of which at most one is 0, and p != 0; complex off the negative axis. The
    derivatives need p > 0, and are nan elsewhere.

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        y: a tensor
        z: a tensor
        p: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * (_carlson(x, y, z, p, [3, 1, 1, 2]) * -0.75).conj()
        y: grad * (_carlson(x, y, z, p, [1, 3, 1, 2]) * -0.75).conj()
        z: grad * (_carlson(x, y, z, p, [1, 1, 3, 2]) * -0.75).conj()
        p: grad * (_carlson(x, y, z, p, [1, 1, 1, 4]) * -1.5).conj()

    Source: DLMF 19.16.2; derivatives: under the integral

    Schema:

        elliprj(Tensor x, Tensor y, Tensor z, Tensor p) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.elliprj(0, 1, 2, plugrad.tensor([1.0, 2.0]))
    tensor([1.7972, 1.0679])
    """
def _carlson(x: Tensor | Number, y: Tensor | Number, z: Tensor | Number, p: Tensor | Number, powers: Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The integral of (t + x)^(-a/2) (t + y)^(-b/2) (t + z)^(-c/2) (t + p)^(-d/2) from 0 to inf, with powers [a, b, c, d].

    Operands are broadcast; integers give the default dtype.

    Args:
        x: a tensor
        y: a tensor
        z: a tensor
        p: a tensor
        powers: ints
        out: a tensor, or None; the result is written there

    Derivatives:

        x: grad * carlson_derivative(0, x, y, z, p, powers).conj()
        y: grad * carlson_derivative(1, x, y, z, p, powers).conj()
        z: grad * carlson_derivative(2, x, y, z, p, powers).conj()
        p: grad * carlson_derivative(3, x, y, z, p, powers).conj()

    Source: derivatives: under the integral

    Schema:

        _carlson(Tensor x, Tensor y, Tensor z, Tensor p, int[] powers) -> Tensor
    """

def chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the first kind T_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * degree(n) * chebyshev_polynomial_u(input, degree(n) - 1)
        n: not_implemented

    Source: DLMF 18.3; derivative: DLMF 18.9.21

    Schema:

        chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.chebyshev_polynomial_t(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([-1., -0., -1.])
    """
def chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the second kind U_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * 2 * gegenbauer_or_zero(degree(n) - 1, 2, input)
        n: not_implemented

    Source: DLMF 18.3; derivative: DLMF 18.9.19 for U_n, which is a Gegenbauer polynomial, DLMF 18.7.4

    Schema:

        chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.chebyshev_polynomial_u(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([-4., -0., -1.])
    """
def chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the third kind V_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * 2 * (gegenbauer_or_zero(degree(n) - 1, 2, input) - gegenbauer_or_zero(degree(n) - 2, 2, input))
        n: not_implemented

    Source: DLMF 18.3; derivative: that of U_n - U_(n-1), to which it is equal by DLMF 18.5

    Schema:

        chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.chebyshev_polynomial_v(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([-7.,  1., -1.])
    """
def chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the fourth kind W_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * 2 * (gegenbauer_or_zero(degree(n) - 1, 2, input) + gegenbauer_or_zero(degree(n) - 2, 2, input))
        n: not_implemented

    Source: DLMF 18.3; derivative: that of U_n + U_(n-1), to which it is equal by DLMF 18.5

    Schema:

        chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.chebyshev_polynomial_w(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([-1., -1., -1.])
    """
def shifted_chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The shifted Chebyshev polynomial of the first kind: `chebyshev_polynomial_t` at 2 x - 1.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Source: DLMF 18.7.7 and 18.7.8

    Schema:

        shifted_chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.shifted_chebyshev_polynomial_t(plugrad.tensor([0.0, 0.5, 1.0]), 3)
    tensor([-1., -0.,  1.])
    """
def shifted_chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The shifted Chebyshev polynomial of the second kind: `chebyshev_polynomial_u` at 2 x - 1.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Source: DLMF 18.7.7 and 18.7.8

    Schema:

        shifted_chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.shifted_chebyshev_polynomial_u(plugrad.tensor([0.0, 0.5, 1.0]), 3)
    tensor([-4., -0.,  4.])
    """
def shifted_chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The shifted Chebyshev polynomial of the third kind: `chebyshev_polynomial_v` at 2 x - 1.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Source: by definition

    Schema:

        shifted_chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.shifted_chebyshev_polynomial_v(plugrad.tensor([0.0, 0.5, 1.0]), 3)
    tensor([-7.,  1.,  1.])
    """
def shifted_chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The shifted Chebyshev polynomial of the fourth kind: `chebyshev_polynomial_w` at 2 x - 1.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Source: by definition

    Schema:

        shifted_chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.shifted_chebyshev_polynomial_w(plugrad.tensor([0.0, 0.5, 1.0]), 3)
    tensor([-1., -1.,  7.])
    """
def hermite_polynomial_h(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The physicists' Hermite polynomial H_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * 2 * degree(n) * hermite_polynomial_h(input, degree(n) - 1)
        n: not_implemented

    Source: DLMF 18.3; derivative: DLMF 18.9.25

    Schema:

        hermite_polynomial_h(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hermite_polynomial_h(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([ 4., -0., -5.])
    """
def hermite_polynomial_he(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The probabilists' Hermite polynomial He_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * degree(n) * hermite_polynomial_he(input, degree(n) - 1)
        n: not_implemented

    Source: DLMF 18.3; derivative: DLMF 18.9.27

    Schema:

        hermite_polynomial_he(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.hermite_polynomial_he(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([ 2.0000, -0.0000, -1.3750])
    """
def laguerre_polynomial_l(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Laguerre polynomial L_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * laguerre_derivative(degree(n), input)
        n: not_implemented

    Source: DLMF 18.3; derivative: DLMF 18.9.23

    Schema:

        laguerre_polynomial_l(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.laguerre_polynomial_l(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([ 5.6667,  1.0000, -0.1458])
    """
def legendre_polynomial_p(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Legendre polynomial P_n.

    Real `input`; `n` is an integer, as a number or a tensor; the fraction of others is cut off. 0 for n < 0.

    Operands are broadcast; integers give the default dtype.

    Args:
        input: a tensor
        n: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        input: grad * gegenbauer_or_zero(degree(n) - 1, 1.5, input)
        n: not_implemented

    Source: DLMF 18.3; derivative: DLMF 18.9.19 for P_n, which is a Gegenbauer polynomial, DLMF 18.7.9

    Schema:

        legendre_polynomial_p(Tensor self, Tensor n) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.legendre_polynomial_p(plugrad.tensor([-1.0, 0.0, 0.5]), 3)
    tensor([-1.0000,  0.0000, -0.4375])
    """
def eval_gegenbauer(n: Tensor | Number, alpha: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Gegenbauer polynomial or function C_n^(alpha)(x), of any real degree `n`.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        n: a tensor
        alpha: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        n: not_implemented
        alpha: not_implemented
        x: grad * 2 * alpha * gegenbauer_or_zero(n - 1, alpha + 1, x)

    Source: DLMF 18.3; derivative by x: DLMF 18.9.19

    Schema:

        eval_gegenbauer(Tensor n, Tensor alpha, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.eval_gegenbauer(3, 1.5, plugrad.tensor([0.0, 0.5]))
    tensor([ 0.0000, -1.5625])
    """
def eval_jacobi(n: Tensor | Number, alpha: Tensor | Number, beta: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Jacobi polynomial or function P_n^(alpha, beta)(x), of any real degree `n`.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        n: a tensor
        alpha: a tensor
        beta: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        n: not_implemented
        alpha: not_implemented
        beta: not_implemented
        x: grad * jacobi_derivative(n, alpha, beta, x)

    Source: DLMF 18.3; derivative by x: DLMF 18.9.15

    Schema:

        eval_jacobi(Tensor n, Tensor alpha, Tensor beta, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.eval_jacobi(3, 0.5, 1.5, plugrad.tensor([0.0, 0.5]))
    tensor([ 0.4375, -0.6562])
    """
def eval_genlaguerre(n: Tensor | Number, alpha: Tensor | Number, x: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The generalized Laguerre polynomial or function L_n^(alpha)(x), of any real degree `n`.

    Real.

    Operands are broadcast; integers give the default dtype.

    Args:
        n: a tensor
        alpha: a tensor
        x: a tensor
        out: a tensor, or None; the result is written there

    Derivatives:

        n: not_implemented
        alpha: not_implemented
        x: grad * genlaguerre_derivative(n, alpha, x)

    Source: DLMF 18.3; derivative by x: DLMF 18.9.23

    Schema:

        eval_genlaguerre(Tensor n, Tensor alpha, Tensor x) -> Tensor

    >>> import plugrad
    >>> from plugrad import special
    >>> special.eval_genlaguerre(3, 0.5, plugrad.tensor([0.0, 0.5]))
    tensor([2.1875, 0.4167])
    """

from plugrad import erfinv as erfinv
from plugrad import exp2 as exp2
from plugrad import sigmoid
expit = sigmoid
from plugrad import expm1 as expm1
from plugrad import lgamma
gammaln = lgamma
from plugrad import i0 as i0
from plugrad import special_i1
i1 = special_i1
from plugrad import log1p as log1p
from plugrad import log_softmax as log_softmax
from plugrad import logit as logit
from plugrad import logsumexp as logsumexp
from plugrad import mvlgamma
multigammaln = mvlgamma
from plugrad import round as round
from plugrad import sinc as sinc
from plugrad import softmax as softmax
from plugrad import xlogy as xlogy

ALIASES: dict[str, str]
