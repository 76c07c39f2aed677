"""Activations as plain functions; `functional` shows them beside the layers'."""

from __future__ import annotations

from collections.abc import Callable

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable


@overridable
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return input.relu_() if inplace else plugrad.relu(input)


@overridable
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution function; "tanh" for its usual approximation."""
    return plugrad.gelu(input, approximate=approximate)


@overridable
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return _maybe_inplace(plugrad.silu, input, inplace)


@overridable
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


@overridable
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


@overridable
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds `threshold`."""
    return plugrad.softplus(input, beta, threshold)


@overridable
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, `negative_slope * x` elsewhere."""
    return _maybe_inplace(plugrad.leaky_relu, input, inplace, negative_slope)


@overridable
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, `alpha * (exp(x) - 1)` elsewhere."""
    return _maybe_inplace(plugrad.elu, input, inplace, alpha)


def _maybe_inplace(
    function: Callable[..., Tensor], input: Tensor, inplace: bool, *args: float
) -> Tensor:
    """`function(input, *args)`, which overwrites `input` if asked to."""
    if not inplace:
        return function(input, *args)
    # Its gradient may need what is about to be overwritten.
    before = input.clone() if input.requires_grad and plugrad.is_grad_enabled() else input
    return input.copy_(function(before, *args))


@overridable
def softmax(input: Tensor, dim: int | None = None, dtype: plugrad.dtype | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`; without `dim`, PyTorch's old implicit choice."""
    return plugrad.softmax(input, _implicit_dim(input, dim), dtype=dtype)


@overridable
def log_softmax(
    input: Tensor, dim: int | None = None, dtype: plugrad.dtype | None = None
) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow."""
    return plugrad.log_softmax(input, _implicit_dim(input, dim), dtype=dtype)


def _implicit_dim(input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


@overridable
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return _maybe_inplace(plugrad.relu6, input, inplace)


@overridable
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x, held between `min_val` and `max_val`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _maybe_inplace(plugrad.hardtanh, input, inplace, min_val, max_val)


@overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where above `threshold`, `value` elsewhere."""
    return _maybe_inplace(plugrad.threshold, input, inplace, threshold, value)


@overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    return _maybe_inplace(plugrad.selu, input, inplace)


@overridable
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, `alpha * (exp(x / alpha) - 1)` elsewhere."""
    return _maybe_inplace(plugrad.celu, input, inplace, alpha)


@overridable
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return _maybe_inplace(plugrad.mish, input, inplace)


@overridable
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    return _maybe_inplace(plugrad.hardsigmoid, input, inplace)


@overridable
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    return _maybe_inplace(plugrad.hardswish, input, inplace)


@overridable
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), computed without overflow."""
    return plugrad.logsigmoid(input)


@overridable
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), a and b the halves of x along `dim`."""
    return plugrad.glu(input, dim)


@overridable
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where positive, `weight * x` elsewhere; one weight, or one per channel (dimension 1)."""
    return plugrad.prelu(input, weight)
