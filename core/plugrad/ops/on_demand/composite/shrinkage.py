"""Decompositions of shrinkage functions; randomised leaky units and dropouts based on a mask."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.device import CPU
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, float16, float32, float64
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.random import draws_on_host, truths
from plugrad.ops.on_demand.prepare import shrinkage as prepare
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.tensor.base import sizes_of
from plugrad.tensor.levels import is_mapped

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# Minus the limit of `selu` at minus infinity.
_ALPHA: Final = 1.7580993408473766


def hardshrink(self: Tensor, lambd: Any) -> Tensor:
    lambd = prepare.hardshrink(self, lambd)[1]
    return self.masked_fill(self.abs() <= lambd, 0)


def softshrink(self: Tensor, lambd: Any) -> Tensor:
    lambd = prepare.softshrink(self, lambd)[1]
    x = widened(self)
    moved = F.where(x > lambd, x - lambd, x + lambd)
    # The product keeps nan, and the sign of 0.
    return in_dtype_of(F.where(x.abs() > lambd, moved, x * 0), self)


def shrink_backward(grad: Tensor, self: Tensor, lambd: Any) -> Tensor:
    return F.where(self.abs() <= lambd, 0, grad)


def rrelu(self: Tensor, lower: Any, upper: Any, training: bool, generator: Any) -> Tensor:
    _check_bounds(self, lower, upper, training)
    if not training:
        return F.leaky_relu(self, (lower + upper) / 2)
    return self * _factors(self, lower, upper, generator)


def rrelu_(self: Tensor, lower: Any, upper: Any, training: bool, generator: Any) -> Tensor:
    _check_bounds(self, lower, upper, training)
    if not training:
        return F.leaky_relu_(self, (lower + upper) / 2)
    return self.mul_(_factors(self, lower, upper, generator))


def rrelu_with_noise(
    self: Tensor, noise: Tensor, lower: Any, upper: Any, training: bool, generator: Any
) -> Tensor:
    _check_noise(self, noise)
    _check_bounds(self, lower, upper, training)
    if not training:
        return F.leaky_relu(self, (lower + upper) / 2)
    factors = _factors(self, lower, upper, generator)
    noise.copy_(factors)
    return self * factors


def rrelu_with_noise_(
    self: Tensor, noise: Tensor, lower: Any, upper: Any, training: bool, generator: Any
) -> Tensor:
    _check_noise(self, noise)
    _check_bounds(self, lower, upper, training)
    if not training:
        return F.leaky_relu_(self, (lower + upper) / 2)
    factors = _factors(self, lower, upper, generator)
    noise.copy_(factors)
    return self.mul_(factors)


def _check_noise(self: Tensor, noise: Tensor) -> None:
    if sizes_of(self) != sizes_of(noise):
        raise RuntimeError(
            f"noise tensor shape must match self tensor shape. Got self.shape = "
            f"{list(sizes_of(self))} noise.shape = {list(sizes_of(noise))}"
        )


def _check_bounds(self: Tensor, lower: Any, upper: Any, training: bool) -> None:
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    kernel = "rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu"
    check_real_floating(kernel, self.dtype)
    # As in PyTorch, which supports it on other devices.
    if training and self.dtype is float16 and self.device.type == "cpu":
        raise not_implemented(kernel, self.dtype)


def _factors(self: Tensor, lower: Any, upper: Any, generator: Any) -> Tensor:
    x = self.detach()
    if draws_on_host(self.device) and self.device.type != "meta" and not is_mapped(self):
        # PyTorch's numbers: one, in double precision, for each element that is not positive.
        below = x <= 0
        count = int(below.sum().item())
        drawn = F.rand((count,), generator=generator, dtype=float64, device=CPU)
        factors = (drawn * (upper - lower) + lower).to(self.dtype)
        if self.device is not CPU:
            factors = F._to_device(factors, self.device)
        return F.ones_like(x).masked_scatter(below, factors)
    drawn = _uniform(sizes_of(self), self, generator) * (upper - lower) + lower
    return F.where(x > 0, 1, drawn.to(self.dtype))


def _uniform(sizes: tuple[int, ...], like: Tensor, generator: Any) -> Tensor:
    dtype = float64 if like.dtype is float64 else float32
    return F.rand(sizes, generator=generator, dtype=dtype, device=like.device)


def _dropped(
    input: Tensor, p: float, train: bool, *, in_place: bool, channels: bool, alpha: bool
) -> Tensor:
    """What every dropout does: multiply by a mask that is scaled, and with `alpha` shift."""
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0.0 or not train or input.numel() == 0:
        return input
    if p == 1.0:
        zero = F.zeros((), dtype=input.dtype, device=input.device)
        return input.mul_(zero) if in_place else input * zero
    sizes = sizes_of(input)
    if channels:
        if len(sizes) < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        sizes = sizes[:2] + (1,) * (len(sizes) - 2)
    if input.dtype.category < FLOATING:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.scalar_name}"
        )
    if channels:
        kept = truths(sizes, 1.0 - p, None, input.device).to(input.dtype)
    else:
        # In the order of the input's memory.
        kept = F.empty_like(input.detach()).bernoulli_(1.0 - p)
    scale = 1.0 / (1.0 - p)
    if alpha:
        scale = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1.0) * (1.0 - p))
    factor = kept * scale
    result = input.mul_(factor) if in_place else input * factor
    if not alpha:
        return result
    shift = (kept - 1.0) * (_ALPHA * scale) + _ALPHA * scale * p
    return result.add_(shift) if in_place else result + shift


def dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    return _dropped(self, p, train, in_place=True, channels=False, alpha=False)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return _dropped(input, p, train, in_place=False, channels=True, alpha=False)


def feature_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    return _dropped(self, p, train, in_place=True, channels=True, alpha=False)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return _dropped(input, p, train, in_place=False, channels=False, alpha=True)


def alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    return _dropped(self, p, train, in_place=True, channels=False, alpha=True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return _dropped(input, p, train, in_place=False, channels=True, alpha=True)


def feature_alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    return _dropped(self, p, train, in_place=True, channels=True, alpha=True)
