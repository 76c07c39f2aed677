"""Broadcasting of numbers and tensors; probabilities and logits; properties computed at first
use."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Number
from typing import Any, Final

import plugrad
from plugrad import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "euler_constant",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant: Final = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast numbers and tensors to tensors of one shape.

    Numbers become tensors of the first tensor's dtype and device; without a tensor, of the default
    dtype. Raises ValueError for any other type.

    >>> from plugrad.distributions.utils import broadcast_all
    >>> import plugrad
    >>> broadcast_all(plugrad.ones(2), 3)
    (tensor([1., 1.]), tensor([3., 3.]))
    """
    if not all(isinstance(value, Tensor | Number) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((value for value in values if isinstance(value, Tensor)), None)
    options: dict[str, Any] = {"dtype": plugrad.get_default_dtype()}
    if like is not None:
        options = {"dtype": like.dtype, "device": like.device}
    tensors = [v if isinstance(v, Tensor) else plugrad.tensor(v, **options) for v in values]
    return tuple(plugrad.broadcast_tensors(*tensors))


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    return plugrad.empty(shape, dtype=like.dtype, device=like.device).normal_()


def uniform(shape: Any, like: Tensor) -> Tensor:
    return plugrad.rand(shape, dtype=like.dtype, device=like.device)


def sum_rightmost(value: Any, dims: int) -> Any:
    """The sum over the last `dims` dimensions, which may be 0."""
    if dims == 0:
        return value
    if dims > value.dim():
        raise RuntimeError(
            f"cannot sum the last {dims} dimensions of a tensor of shape {tuple(value.shape)}"
        )
    return value.reshape((*value.shape[:-dims], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities for the log odds of each event (`is_binary`), or for the unnormalized
    logarithms of probabilities along the last dimension."""
    return plugrad.sigmoid(logits) if is_binary else plugrad.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities clamped away from 0 and 1 by the precision of their dtype."""
    eps = plugrad.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logits of probabilities: the inverse of `logits_to_probs`."""
    clamped = clamp_probs(probs)
    return plugrad.log(clamped) - plugrad.log1p(-clamped) if is_binary else plugrad.log(clamped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of lower triangular matrices (*, n, n) row by row, up to a diagonal.

    Raises ValueError if the matrices have no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = plugrad.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices from their elements: the inverse of `tril_matrix_to_vec`.

    Raises ValueError if no number of rows gives this number of elements.
    """
    count = vec.shape[-1]
    # count = n (n + 1) / 2 + n diag + ..., solved for n.
    n = (
        -(1 + 2 * diag) + math.sqrt((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1))
    ) / 2
    eps = plugrad.finfo(vec.dtype).eps
    if not round(n) - eps <= n <= round(n) + eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    size = round(n)
    mat = vec.new_zeros((*vec.shape[:-1], size, size))
    rows, columns = plugrad.tril_indices(size, size, diag, device=vec.device)
    mat[..., rows, columns] = vec
    return mat


class lazy_property:
    """A property that is computed, with gradients, at the first access and then stored.

    On the class it is an ordinary property.
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return _LazyAsProperty(self.wrapped)
        with plugrad.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.__name__, value)
        return value


class _LazyAsProperty(property):
    """The class's view of a lazy property."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        super().__init__(wrapped)
