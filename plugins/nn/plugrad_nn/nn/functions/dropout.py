"""Dropouts and shrinkage functions; `functional` shows them beside the others."""

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
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p)."""
    _check_probability(p)
    return plugrad.dropout_(input, p, training) if inplace else plugrad.dropout(input, p, training)


@overridable
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes channels of signals, (N, C, L) or (C, L)."""
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
    """Zeroes channels of images, (N, C, H, W); three dimensions are taken for (N, C, L)."""
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
    """Zeroes channels of volumes, (N, C, D, H, W) or (C, D, H, W)."""
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
    """Dropout that keeps mean 0 and variance 1, for `selu` (Klambauer et al. 2017)."""
    _check_probability(p)
    if inplace:
        return plugrad.alpha_dropout_(input, p, training)
    return plugrad.alpha_dropout(input, p, training)


@overridable
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels of (N, C, ...)."""
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
    """x where positive, a multiple elsewhere: by a random factor in training, else by the mean."""
    if inplace:
        return plugrad.rrelu_(input, lower, upper, training)
    return plugrad.rrelu(input, lower, upper, training)


@overridable
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """`rrelu`, written to `input`."""
    return plugrad.rrelu_(input, lower, upper, training)


@overridable
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x where its absolute value exceeds `lambd`, 0 elsewhere."""
    return plugrad.hardshrink(input, lambd, out=out)


@overridable
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x moved toward 0 by `lambd`, and 0 where that would cross it."""
    return plugrad.softshrink(input, lambd, out=out)


@overridable
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


@overridable
def softsign(input: Tensor) -> Tensor:
    """x / (|x| + 1)."""
    return input / (input.abs() + 1)


@overridable
def softmin(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: Any = 3,
    dtype: plugrad.dtype | None = None,
) -> Tensor:
    """softmax(-x) along `dim`."""
    return softmax(-input, dim, _stacklevel, dtype)
