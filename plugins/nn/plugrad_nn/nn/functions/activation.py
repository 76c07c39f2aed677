"""Activations as plain functions; `functional` shows them beside the layers'."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable


@overridable
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return input.relu_() if inplace else plugrad.relu(input)


@overridable
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x * Phi(x), Phi the normal distribution function; "tanh" for its usual approximation."""
    return plugrad.gelu(input, approximate=approximate, out=out)


@overridable
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return plugrad.silu_(input) if inplace else plugrad.silu(input)


@overridable
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


@overridable
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


@overridable
def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds `threshold`."""
    return plugrad.softplus(input, beta, threshold, out=out)


@overridable
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, `negative_slope * x` elsewhere."""
    if inplace:
        return plugrad.leaky_relu_(input, negative_slope)
    return plugrad.leaky_relu(input, negative_slope)


@overridable
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, `alpha * (exp(x) - 1)` elsewhere."""
    return plugrad.elu_(input, alpha) if inplace else plugrad.elu(input, alpha)


@overridable
def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: Any = 3,
    dtype: plugrad.dtype | None = None,
) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`; without `dim`, PyTorch's old implicit choice."""
    return plugrad.softmax(input, _implicit_dim(input, dim), dtype=dtype)


@overridable
def log_softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: Any = 3,
    dtype: plugrad.dtype | None = None,
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
    return plugrad.hardtanh_(input, 0.0, 6.0) if inplace else plugrad.relu6(input)


@overridable
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x, held between `min_val` and `max_val`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return plugrad.hardtanh_(input, min_val, max_val)
    return plugrad.hardtanh(input, min_val, max_val)


@overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where above `threshold`, `value` elsewhere."""
    if inplace:
        return plugrad.threshold_(input, threshold, value)
    return plugrad.threshold(input, threshold, value)


@overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    return plugrad.selu_(input) if inplace else plugrad.selu(input)


@overridable
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, `alpha * (exp(x / alpha) - 1)` elsewhere."""
    return plugrad.celu_(input, alpha) if inplace else plugrad.celu(input, alpha)


@overridable
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return plugrad.mish_(input) if inplace else plugrad.mish(input)


@overridable
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    return plugrad.hardsigmoid_(input) if inplace else plugrad.hardsigmoid(input)


@overridable
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    return plugrad.hardswish_(input) if inplace else plugrad.hardswish(input)


@overridable
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(sigmoid(x)), computed without overflow."""
    return plugrad.logsigmoid(input, out=out)


@overridable
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), a and b the halves of x along `dim`."""
    return plugrad.glu(input, dim)


@overridable
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where positive, `weight * x` elsewhere; one weight, or one per channel (dimension 1)."""
    return plugrad.prelu(input, weight)
