"""Activations as plain functions, which `functional` exports."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable


@overridable
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0).

    Args:
        input: any shape; integers stay integers.
        inplace: write the result into `input`.

    Raises:
        RuntimeError: `input` is of dtype bool.
        NotImplementedError: it is complex.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 2.0])
    >>> plugrad.nn.functional.relu(x)
    tensor([0., 0., 2.])
    """
    return input.relu_() if inplace else plugrad.relu(input)


@overridable
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x * Phi(x), Phi the normal distribution function; "tanh" for its usual approximation.

    Args:
        input: any shape, floating dtype.
        approximate: "none", or "tanh".
        out: where the result is written; a new tensor by default.

    Raises:
        RuntimeError: `approximate` is another string.
        NotImplementedError: `input` has another dtype.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 1.0])
    >>> plugrad.nn.functional.gelu(x)
    tensor([-0.1587,  0.0000,  0.8413])
    """
    return plugrad.gelu(input, approximate=approximate, out=out)


@overridable
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    Args:
        input: any shape, floating or complex dtype.
        inplace: write the result into `input`.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 1.0])
    >>> plugrad.nn.functional.silu(x)
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return plugrad.silu_(input) if inplace else plugrad.silu(input)


@overridable
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    Args:
        input: any shape; integers give the default dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 1.0])
    >>> plugrad.nn.functional.sigmoid(x)
    tensor([0.2689, 0.5000, 0.7311])
    """
    return input.sigmoid()


@overridable
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent.

    Args:
        input: any shape; integers give the default dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 1.0])
    >>> plugrad.nn.functional.tanh(x)
    tensor([-0.7616,  0.0000,  0.7616])
    """
    return input.tanh()


@overridable
def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds `threshold`.

    Args:
        input: any shape, floating dtype.
        beta: how sharp the bend at 0 is.
        threshold: where the result is x itself.
        out: where the result is written; a new tensor by default.

    Raises:
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 30.0])
    >>> plugrad.nn.functional.softplus(x)
    tensor([ 0.3133,  0.6931, 30.0000])
    """
    return plugrad.softplus(input, beta, threshold, out=out)


@overridable
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, `negative_slope * x` elsewhere.

    Args:
        input: any shape, floating dtype.
        negative_slope: the slope below 0.
        inplace: write the result into `input`.

    Raises:
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-10.0, 0.0, 2.0])
    >>> plugrad.nn.functional.leaky_relu(x, negative_slope=0.1)
    tensor([-1.,  0.,  2.])
    """
    if inplace:
        return plugrad.leaky_relu_(input, negative_slope)
    return plugrad.leaky_relu(input, negative_slope)


@overridable
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, `alpha * (exp(x) - 1)` elsewhere.

    Args:
        input: any shape, floating dtype.
        alpha: the result tends to -alpha for large negative x.
        inplace: write the result into `input`.

    Raises:
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-100.0, 0.0, 2.0])
    >>> plugrad.nn.functional.elu(x, alpha=3.0)
    tensor([-3.,  0.,  2.])
    """
    return plugrad.elu_(input, alpha) if inplace else plugrad.elu(input, alpha)


@overridable
def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: Any = 3,
    dtype: plugrad.dtype | None = None,
) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`; without `dim`, PyTorch's old implicit choice.

    Args:
        input: any shape, floating dtype.
        dim: the dimension along which the result sums to 1; by default 0 for 0, 1 and 3 dimensions,
            else 1.
        dtype: the result's dtype; `input` is converted first.

    Raises:
        IndexError: `dim` is out of range.
        NotImplementedError: `input` is of another dtype, and `dtype` is not given.

    >>> import plugrad
    >>> scores = plugrad.tensor([[0.0, 0.0], [0.0, 1000.0]])
    >>> plugrad.nn.functional.softmax(scores, dim=1)
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    return plugrad.softmax(input, _implicit_dim(input, dim), dtype=dtype)


@overridable
def log_softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: Any = 3,
    dtype: plugrad.dtype | None = None,
) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow.

    Args:
        input: any shape, floating dtype.
        dim: the dimension of the softmax; by default 0 for 0, 1 and 3 dimensions, else 1.
        dtype: the result's dtype; `input` is converted first.

    Raises:
        IndexError: `dim` is out of range.
        NotImplementedError: `input` is of another dtype, and `dtype` is not given.

    >>> import plugrad
    >>> scores = plugrad.tensor([1000.0, 0.0])
    >>> plugrad.nn.functional.log_softmax(scores, dim=0)
    tensor([    0., -1000.])
    """
    return plugrad.log_softmax(input, _implicit_dim(input, dim), dtype=dtype)


def _implicit_dim(input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


@overridable
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6).

    Args:
        input: any shape; integers stay integers.
        inplace: write the result into `input`.

    Raises:
        RuntimeError: `input` is of dtype bool.
        NotImplementedError: it is complex.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 3.0, 9.0])
    >>> plugrad.nn.functional.relu6(x)
    tensor([0., 3., 6.])
    """
    return plugrad.hardtanh_(input, 0.0, 6.0) if inplace else plugrad.relu6(input)


@overridable
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x, held between `min_val` and `max_val`.

    Args:
        input: any shape; integers stay integers.
        min_val, max_val: the least and the greatest value of the result.
        inplace: write the result into `input`.

    Raises:
        ValueError: `min_val` is greater than `max_val`.
        RuntimeError: `input` is of dtype bool.
        NotImplementedError: it is complex.

    >>> import plugrad
    >>> x = plugrad.tensor([-3.0, 0.5, 3.0])
    >>> plugrad.nn.functional.hardtanh(x, max_val=2.0)
    tensor([-1.0000,  0.5000,  2.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return plugrad.hardtanh_(input, min_val, max_val)
    return plugrad.hardtanh(input, min_val, max_val)


@overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where above `threshold`, `value` elsewhere.

    Args:
        input: any shape; integers stay integers.
        threshold: an element equal to it gives `value`.
        value: the replacement of all other elements.
        inplace: write the result into `input`.

    >>> import plugrad
    >>> x = plugrad.tensor([1.0, 2.0, 3.0])
    >>> plugrad.nn.functional.threshold(x, 2.0, -1.0)
    tensor([-1., -1.,  3.])
    """
    if inplace:
        return plugrad.threshold_(input, threshold, value)
    return plugrad.threshold(input, threshold, value)


@overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al. 2017).

    Args:
        input: any shape, floating dtype.
        inplace: write the result into `input`.

    Raises:
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-100.0, 0.0, 1.0])
    >>> plugrad.nn.functional.selu(x)
    tensor([-1.7581,  0.0000,  1.0507])
    """
    return plugrad.selu_(input) if inplace else plugrad.selu(input)


@overridable
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, `alpha * (exp(x / alpha) - 1)` elsewhere.

    Args:
        input: any shape, floating dtype.
        alpha: the result tends to -alpha for large negative x.
        inplace: write the result into `input`.

    Raises:
        RuntimeError: `alpha` is 0.
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-100.0, 0.0, 1.0])
    >>> plugrad.nn.functional.celu(x, alpha=2.0)
    tensor([-2.,  0.,  1.])
    """
    return plugrad.celu_(input, alpha) if inplace else plugrad.celu(input, alpha)


@overridable
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)).

    Args:
        input: any shape, floating dtype.
        inplace: write the result into `input`.

    Raises:
        NotImplementedError: `input` has another dtype.

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 1.0])
    >>> plugrad.nn.functional.mish(x)
    tensor([-0.3034,  0.0000,  0.8651])
    """
    return plugrad.mish_(input) if inplace else plugrad.mish(input)


@overridable
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6.

    Args:
        input: any shape, floating dtype.
        inplace: write the result into `input`.

    Raises:
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-4.0, 0.0, 1.5])
    >>> plugrad.nn.functional.hardsigmoid(x)
    tensor([0.0000, 0.5000, 0.7500])
    """
    return plugrad.hardsigmoid_(input) if inplace else plugrad.hardsigmoid(input)


@overridable
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x).

    Args:
        input: any shape, floating dtype.
        inplace: write the result into `input`.

    Raises:
        NotImplementedError: `input` has another dtype.

    Source: Howard et al., Searching for MobileNetV3, 2019.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 1.0, 4.0])
    >>> plugrad.nn.functional.hardswish(x)
    tensor([-0.3333,  0.6667,  4.0000])
    """
    return plugrad.hardswish_(input) if inplace else plugrad.hardswish(input)


@overridable
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(sigmoid(x)), computed without overflow.

    Args:
        input: any shape, floating dtype.
        out: where the result is written; a new tensor by default.

    Raises:
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1000.0, -200.0])
    >>> plugrad.nn.functional.logsigmoid(x)
    tensor([-1000.,  -200.])
    """
    return plugrad.logsigmoid(input, out=out)


@overridable
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), a and b the halves of x along `dim`.

    Args:
        input: any shape, floating dtype.
        dim: which dimension is halved.

    Raises:
        RuntimeError: the size of that dimension is odd.
        NotImplementedError: `input` has another dtype.

    Source: Dauphin et al., Language Modeling with Gated Convolutional Networks, 2016.

    >>> import plugrad
    >>> x = plugrad.tensor([3.0, 4.0, 0.0, 100.0])
    >>> plugrad.nn.functional.glu(x)
    tensor([1.5000, 4.0000])
    """
    return plugrad.glu(input, dim)


@overridable
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where positive, `weight * x` elsewhere; one weight, or one per channel (dimension 1).

    Args:
        input: any shape, floating dtype.
        weight: () or (1) for one weight, or (C), C the size of dimension 1; of the dtype of
            `input`.

    Raises:
        RuntimeError: the dtypes differ, or there is another number of weights.

    Source: He et al., Delving Deep into Rectifiers, 2015.

    >>> import plugrad
    >>> x, weight = plugrad.tensor([[-4.0, -4.0]]), plugrad.tensor([0.25, 0.5])
    >>> plugrad.nn.functional.prelu(x, weight)
    tensor([[-1., -2.]])
    """
    return plugrad.prelu(input, weight)
