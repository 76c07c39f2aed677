"""Gradients of elementwise operators of one tensor."""

# Tensor dunders may return NotImplemented, which is Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; real tensors skip dispatch, because gradients call this very often."""
    return F.conj_physical(x) if x.dtype.is_complex else x


def zero_where(condition: Tensor, x: Tensor) -> Tensor:
    """0 where a condition holds, `x` elsewhere, even if the other value is inf or nan."""
    return F.where(condition, 0.0, x)


def keep_where(condition: Tensor, x: Tensor) -> Tensor:
    """`x` where a condition holds, 0 elsewhere."""
    return F.where(condition, x, 0.0)


def sgn_backward(grad: Tensor, x: Tensor, sgn: Tensor) -> Tensor:
    """For complex numbers s = x / |x|: only changes orthogonal to s affect it."""
    if not x.dtype.is_complex:
        return F.zeros_like(grad)
    along = F.real(conjugate(grad) * sgn)
    return zero_where(x == 0, (grad - sgn * along) / x.abs())


def acosh_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Two roots instead of one: for complex numbers left of the imaginary axis they differ."""
    if x.dtype.is_complex:
        return grad * conjugate((x + 1).rsqrt() * (x - 1).rsqrt())
    return grad * (x * x - 1).rsqrt()


def angle_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Zero for reals, because their angle is constant on either side of 0."""
    if not x.dtype.is_complex:
        return F.zeros_like(grad)
    return zero_where(x == 0, grad * x / x.abs() ** 2 * 1j)


def sinc_gradient(grad: Tensor, x: Tensor) -> Tensor:
    """(cos(pi x) - sinc(x)) / x, as one quotient; 0 at 0."""
    scaled = x * math.pi
    slope = (scaled * scaled.cos() - scaled.sin()) / (scaled * x)
    return grad * conjugate(zero_where(x == 0, slope))


def logit_gradient(grad: Tensor, x: Tensor, eps: float | None) -> Tensor:
    """1 / (x (1 - x)) within the limits; outside 0 where elements are clamped, else nan."""
    low, beyond = (0.0, math.nan) if eps is None or eps < 0 else (eps, 0.0)
    outside = F.logical_or(x < low, x > 1.0 - low)
    return F.where(outside, beyond, grad / (x * (1.0 - x)))


def nan_to_num_backward(grad: Tensor, x: Tensor) -> Tensor:
    """What was replaced has no gradient; the parts of complex numbers have one each."""
    if not x.dtype.is_complex:
        return grad * x.isfinite()
    return F.complex(F.real(grad) * F.real(x).isfinite(), F.imag(grad) * F.imag(x).isfinite())
