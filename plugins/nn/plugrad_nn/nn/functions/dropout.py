"""Dropouts and shrinkage functions, which `functional` exports."""

from __future__ import annotations

import warnings
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.activation import softmax
from plugrad_nn.nn.overridable import overridable


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if inplace:
        return plugrad.feature_dropout_(input, p, training)
    return plugrad.feature_dropout(input, p, training)


def _channels_of_one(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Of one sample without the dimension N."""
    if inplace:
        return _channels(input.unsqueeze_(0), p, training, inplace).squeeze_(0)
    return _channels(input.unsqueeze(0), p, training, inplace).squeeze(0)


def _unusual_rank(name: str, rank: int, spatial: int) -> str:
    return (
        f"{name}: Received a {rank}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{spatial} spatial dimensions, a channel dimension, and an optional batch dimension (i.e. "
        f"{spatial + 1}D or {spatial + 2}D inputs)."
    )


@overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p).

    Args:
        input: any shape, floating or complex dtype.
        p: in [0, 1], the probability.
        training: without it, nothing is dropped.
        inplace: write the result into `input`.

    Raises:
        ValueError: `p` is not in [0, 1].

    Source: Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting,
        2014.

    >>> import plugrad
    >>> x = plugrad.ones(1000)
    >>> plugrad.nn.functional.dropout(x, p=0.75).unique()
    tensor([0., 4.])
    """
    _check_probability(p)
    return plugrad.dropout_(input, p, training) if inplace else plugrad.dropout(input, p, training)


@overridable
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes channels of signals, (N, C, L) or (C, L).

    Args:
        input: (N, C, L) or (C, L).
        p: in [0, 1], the probability for each channel; the others are scaled by 1 / (1 - p).
        training: without it, nothing is dropped.
        inplace: write the result into `input`.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: `input` has neither 2 nor 3 dimensions.

    >>> import plugrad
    >>> signal = plugrad.nn.functional.dropout1d(plugrad.ones(8, 3))
    >>> bool((signal == signal[:, :1]).all())
    True
    """
    _check_probability(p)
    rank = input.dim()
    if rank not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    drop = _channels if rank == 3 else _channels_of_one
    return drop(input, p, training, inplace)


@overridable
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes channels of images, (N, C, H, W); three dimensions are taken for (N, C, L).

    Args:
        input: (N, C, H, W); other numbers of dimensions give a warning.
        p: in [0, 1], the probability for each channel; the others are scaled by 1 / (1 - p).
        training: without it, nothing is dropped.
        inplace: write the result into `input`.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import plugrad
    >>> image = plugrad.nn.functional.dropout2d(plugrad.ones(1, 8, 2, 2))
    >>> bool((image == image[:, :, :1, :1]).all())
    True
    """
    _check_probability(p)
    rank = input.dim()
    if rank not in (3, 4):
        warnings.warn(_unusual_rank("dropout2d", rank, 2), stacklevel=3)
    if rank == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=3,
        )
    return _channels(input, p, training, inplace)


@overridable
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes channels of volumes, (N, C, D, H, W) or (C, D, H, W).

    Args:
        input: (N, C, D, H, W) or (C, D, H, W); other numbers of dimensions give a warning.
        p: in [0, 1], the probability for each channel; the others are scaled by 1 / (1 - p).
        training: without it, nothing is dropped.
        inplace: write the result into `input`.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import plugrad
    >>> volume = plugrad.nn.functional.dropout3d(plugrad.ones(8, 2, 2, 2))
    >>> bool((volume == volume[:, :1, :1, :1]).all())
    True
    """
    _check_probability(p)
    rank = input.dim()
    if rank not in (4, 5):
        warnings.warn(_unusual_rank("dropout3d", rank, 3), stacklevel=3)
    drop = _channels if rank == 5 else _channels_of_one
    return drop(input, p, training, inplace)


@overridable
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for `selu` (Klambauer et al. 2017).

    Args:
        input: any shape, floating dtype.
        p: in [0, 1], the probability.
        training: without it, nothing is dropped.
        inplace: write the result into `input`.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import plugrad
    >>> x = plugrad.zeros(1000)
    >>> plugrad.nn.functional.alpha_dropout(x, training=True).unique()
    tensor([-0.7792,  0.7792])
    """
    _check_probability(p)
    if inplace:
        return plugrad.alpha_dropout_(input, p, training)
    return plugrad.alpha_dropout(input, p, training)


@overridable
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels of (N, C, ...).

    Args:
        input: (N, C, ...), floating dtype.
        p: in [0, 1], the probability for each channel; the others are scaled by 1 / (1 - p).
        training: without it, nothing is dropped.
        inplace: write the result into `input`.

    Raises:
        ValueError: `p` is not in [0, 1].

    >>> import plugrad
    >>> x = plugrad.zeros(1, 8, 3)
    >>> x = plugrad.nn.functional.feature_alpha_dropout(x, training=True)
    >>> bool((x == x[:, :, :1]).all())
    True
    """
    _check_probability(p)
    if inplace:
        return plugrad.feature_alpha_dropout_(input, p, training)
    return plugrad.feature_alpha_dropout(input, p, training)


@overridable
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x where positive, else a multiple of x: by a random factor in training, otherwise by the
    mean.

    Args:
        input: any shape, floating dtype.
        lower, upper: the bounds of the factors, which are uniformly distributed.
        training: whether the factors are random.
        inplace: write the result into `input`.

    Raises:
        RuntimeError: `lower` is greater than `upper`.
        NotImplementedError: `input` has another dtype.

    Source: Xu et al., Empirical Evaluation of Rectified Activations in Convolutional Network, 2015.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 2.0])
    >>> plugrad.nn.functional.rrelu(x, lower=0.25, upper=0.75)
    tensor([-0.5000,  2.0000])
    """
    if inplace:
        return plugrad.rrelu_(input, lower, upper, training)
    return plugrad.rrelu(input, lower, upper, training)


@overridable
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """`rrelu`, written to `input`.

    Args:
        input: the tensor to change; it is returned.
        lower, upper, training: see `rrelu`.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 2.0])
    >>> x = plugrad.nn.functional.rrelu_(x, lower=0.25, upper=0.75)
    >>> x
    tensor([-0.5000,  2.0000])
    """
    return plugrad.rrelu_(input, lower, upper, training)


@overridable
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x where its absolute value exceeds `lambd`, 0 elsewhere.

    Args:
        input: any shape, floating dtype.
        lambd: the largest magnitude that becomes 0.
        out: where the result is written; a new tensor by default.

    Raises:
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.5, 2.0])
    >>> plugrad.nn.functional.hardshrink(x)
    tensor([-1.,  0.,  2.])
    """
    return plugrad.hardshrink(input, lambd, out=out)


@overridable
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x moved toward 0 by `lambd`, and 0 where that would cross it.

    Args:
        input: any shape, floating dtype.
        lambd: how far elements move; not negative.
        out: where the result is written; a new tensor by default.

    Raises:
        RuntimeError: `lambd` is negative.
        NotImplementedError: `input` has another dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.5, 2.0])
    >>> plugrad.nn.functional.softshrink(x)
    tensor([-0.5000,  0.0000,  1.5000])
    """
    return plugrad.softshrink(input, lambd, out=out)


@overridable
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    Args:
        input: any shape, floating or complex; integers give the default dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 1.0])
    >>> plugrad.nn.functional.tanhshrink(x)
    tensor([-0.2384,  0.0000,  0.2384])
    """
    return input - input.tanh()


@overridable
def softsign(input: Tensor) -> Tensor:
    """x / (|x| + 1).

    Args:
        input: any shape, floating or complex; integers give the default dtype.

    >>> import plugrad
    >>> x = plugrad.tensor([-1.0, 0.0, 3.0])
    >>> plugrad.nn.functional.softsign(x)
    tensor([-0.5000,  0.0000,  0.7500])
    """
    return input / (input.abs() + 1)


@overridable
def softmin(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: Any = 3,
    dtype: plugrad.dtype | None = None,
) -> Tensor:
    """softmax(-x) along `dim`.

    Args:
        input: any shape, floating dtype.
        dim: the dimension along which the result sums to 1; by default 0 for 0, 1 and 3 dimensions,
            else 1.
        dtype: the result's dtype; `input` is converted first.

    Raises:
        IndexError: `dim` is out of range.

    >>> import plugrad
    >>> x = plugrad.tensor([0.0, 0.0, 1000.0])
    >>> plugrad.nn.functional.softmin(x, dim=0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    return softmax(plugrad.neg(input), dim, _stacklevel, dtype)
