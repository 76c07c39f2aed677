"""plugrad.masked: reductions and normalizations of the elements where a mask is True.

A mask has the shape of the input, or one that broadcasts to it. Without a mask all elements count.
Masked-out elements do not affect results and get no gradient.

>>> import plugrad
>>> x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> mask = plugrad.tensor([[True, True], [False, True]])
>>> plugrad.masked.sum(x, 0, mask=mask)
tensor([1., 6.])
>>> plugrad.masked.mean(x, 0, mask=mask)
tensor([1., 3.])
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: it only calls operators.
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from plugrad._generated import functions
from plugrad.dtype import (
    BOOL,
    FLOATING,
    INTEGER,
    DType,
    bool_,
    get_default_dtype,
    iinfo,
    int64,
)
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.arguments import type_name

if TYPE_CHECKING:
    from plugrad import Tensor

# What it gives is the Tensor that users see.
F: Any = functions

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
    "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
    "var",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


def _mask_like(input: Any, mask: Any) -> Any:
    """The mask in the shape of the input; None stays None."""
    if mask is None:
        return None
    if len(sizes_of(mask)) > len(sizes_of(input)):
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            "input)"
        )
    mask = mask if mask.dtype is bool_ else mask.to(bool_)
    return F.broadcast_to(mask, sizes_of(input))


def _kept(input: Any, mask: Any, fill: Callable[[DType], Any]) -> Any:
    """The input with a number in place of masked-out elements."""
    if mask is None:
        return input
    number = F.full((), fill(input.dtype), dtype=input.dtype, device=input.device)
    return F.where(_mask_like(input, mask), input, number)


def _in_dtype(input: Any, dtype: DType | None, name: str) -> Any:
    if not isinstance(input, TensorBase):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}"
        )
    return input if dtype is None or input.dtype is dtype else cast(Any, input).to(dtype)


def _summed(input: Any, dtype: DType | None, name: str) -> Any:
    """The input in the dtype in which it is added up."""
    input = _in_dtype(input, dtype, name)
    return input.to(int64) if dtype is None and input.dtype.category <= INTEGER else input


def _dims(input: Any, dim: Any) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front; all for None and ()."""
    ndim = len(sizes_of(input))
    if dim is None or (not isinstance(dim, int) and len(tuple(dim)) == 0):
        return tuple(range(ndim))
    found: list[int] = []
    for item in (dim,) if isinstance(dim, int) else tuple(dim):
        place = wrap_dim(item, ndim)
        if place in found:
            raise RuntimeError(f"dim={place} appears multiple times in the list of dims")
        found.append(place)
    return tuple(found) if ndim > 0 else ()


def _one_dim(input: Any, dim: Any) -> int:
    """The dimension along which elements stay apart; the first of several, or of all for None."""
    return dim if type(dim) is int else min(_dims(input, dim), default=0)


def _zero(dtype: DType) -> Any:
    return 0


def _one(dtype: DType) -> Any:
    return 1


def _lowest(dtype: DType) -> Any:
    return -math.inf if dtype.category >= FLOATING else iinfo(dtype).min


def _highest(dtype: DType) -> Any:
    return math.inf if dtype.category >= FLOATING else iinfo(dtype).max


def _check_ordered(input: Any, mask: Any, name: str) -> None:
    if mask is not None and input.dtype.category == BOOL:
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")


@explains(name="sum")
def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The sum along some dimensions, or all; 0 where everything is masked out.

    >>> import plugrad
    >>> plugrad.masked.sum(plugrad.tensor([1, 2, 3]), mask=plugrad.tensor([True, False, True]))
    tensor(4)
    """
    input = _summed(input, dtype, "sum")
    return F.sum(_kept(input, mask, _zero), _dims(input, dim), keepdim)


@explains(name="prod")
def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The product along some dimensions, or all; 1 where everything is masked out.

    >>> import plugrad
    >>> plugrad.masked.prod(plugrad.tensor([2, 2, 3]), mask=plugrad.tensor([True, False, True]))
    tensor(6)
    """
    input = _summed(input, dtype, "prod")
    result = _kept(input, mask, _one)
    for place in sorted(_dims(input, dim), reverse=True):
        result = F.prod(result, place, keepdim)
    return result


@explains(name="cumsum")
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The sums of the first elements along a dimension, in the dtype of the input.

    Raises:
        NotImplementedError: bools without another `dtype`.

    >>> import plugrad
    >>> mask = plugrad.tensor([True, False, True])
    >>> plugrad.masked.cumsum(plugrad.tensor([1, 2, 3]), 0, mask=mask)
    tensor([1, 1, 4])
    """
    input = _in_dtype(input, dtype, "cumsum")
    return F.cumsum(_kept(input, mask, _zero), _one_dim(input, dim), dtype=input.dtype)


@explains(name="cumprod")
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The products of the first elements along a dimension, in the dtype of the input.

    Raises:
        NotImplementedError: bools without another `dtype`.

    >>> import plugrad
    >>> mask = plugrad.tensor([True, False, True])
    >>> plugrad.masked.cumprod(plugrad.tensor([2, 2, 3]), 0, mask=mask)
    tensor([2, 2, 6])
    """
    input = _in_dtype(input, dtype, "cumprod")
    return F.cumprod(_kept(input, mask, _one), _one_dim(input, dim), dtype=input.dtype)


@explains(name="amax")
def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The greatest element along some dimensions; the dtype's lowest where there is none.

    Raises:
        NotImplementedError: bools with a mask.

    >>> import plugrad
    >>> plugrad.masked.amax(plugrad.tensor([1, 5, 3]), mask=plugrad.tensor([True, False, True]))
    tensor(3)
    """
    input = _in_dtype(input, dtype, "amax")
    _check_ordered(input, mask, "amax")
    return F.amax(_kept(input, mask, _lowest), _dims(input, dim), keepdim)


@explains(name="amin")
def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The least element along some dimensions; the dtype's highest where there is none.

    Raises:
        NotImplementedError: bools with a mask.

    >>> import plugrad
    >>> plugrad.masked.amin(plugrad.tensor([1, 0, 3]), mask=plugrad.tensor([True, False, True]))
    tensor(1)
    """
    input = _in_dtype(input, dtype, "amin")
    _check_ordered(input, mask, "amin")
    return F.amin(_kept(input, mask, _highest), _dims(input, dim), keepdim)


@explains(name="argmax")
def argmax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Where the greatest element is, as a number in the dtype of the input.

    >>> import plugrad
    >>> plugrad.masked.argmax(plugrad.tensor([1, 5, 3]), mask=plugrad.tensor([True, False, True]))
    tensor(2)
    """
    input = _in_dtype(input, dtype, "argmax")
    _check_ordered(input, mask, "argmax")
    return F.argmax(_kept(input, mask, _lowest), dim, keepdim).to(input.dtype)


@explains(name="argmin")
def argmin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Where the least element is, as a number in the dtype of the input.

    >>> import plugrad
    >>> plugrad.masked.argmin(plugrad.tensor([1, 0, 3]), mask=plugrad.tensor([True, False, True]))
    tensor(0)
    """
    input = _in_dtype(input, dtype, "argmin")
    _check_ordered(input, mask, "argmin")
    return F.argmin(_kept(input, mask, _highest), dim, keepdim).to(input.dtype)


def _count(input: Any, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Any:
    """How many elements count, in int64."""
    if mask is None:
        mask = F.ones(sizes_of(input), dtype=bool_, device=input.device)
    return F.sum(_mask_like(input, mask), dims, keepdim)


@explains(name="mean")
def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The mean along some dimensions, or all; nan where everything is masked out.

    Raises:
        ValueError: integers or bools, and no floating point `dtype`.

    >>> import plugrad
    >>> mask = plugrad.tensor([True, True, False])
    >>> plugrad.masked.mean(plugrad.tensor([1.0, 2.0, 4.0]), mask=mask)
    tensor(1.5000)
    """
    input = _in_dtype(input, dtype, "mean")
    if input.dtype.category < FLOATING:
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {input.dtype}"
        )
    dims = _dims(input, dim)
    if mask is None:
        return F.mean(input, dims, keepdim)
    total = F.sum(_kept(input, mask, _zero), dims, keepdim)
    return total / _count(input, dims, keepdim, mask)


@explains(name="median")
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The median along a dimension, the lower of two; nan where nothing is left.

    Elements that are nan do not count either.

    Raises:
        ValueError: nothing is left of integers.

    >>> import plugrad
    >>> mask = plugrad.tensor([True, True, False])
    >>> plugrad.masked.median(plugrad.tensor([3.0, 1.0, 2.0]), 0, mask=mask)
    tensor(1.)
    """
    input = _in_dtype(input, dtype, "median")
    dim = _one_dim(input, dim)
    kind = input.dtype
    if not kind.is_floating_point:
        known = mask is not None and input.device.type != "meta"
        if known and bool((_count(input, (dim,), False, mask) == 0).any()):
            raise ValueError(
                "masked median expects no fully masked out rows if dtype is not floating point"
            )
        input = input.to(get_default_dtype())
    if input.ndim == 0:
        wrap_dim(dim, 0)
        return _kept(input, mask, lambda _: math.nan).to(kind)
    in_order = F.sort(_kept(input, mask, lambda _: math.nan), dim)[0]
    count = F.sum(F.logical_not(F.isnan(in_order)), dim, True)
    found = F.gather(in_order, dim, F.clamp((count - 1) // 2, 0))
    return (found if keepdim else found.squeeze_(dim)).to(kind)


@explains(name="norm")
def norm(
    input: Tensor,
    ord: Any = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The norm of vectors, as `linalg.vector_norm`.

    >>> import plugrad
    >>> mask = plugrad.tensor([True, True, False])
    >>> plugrad.masked.norm(plugrad.tensor([3.0, 4.0, 9.0]), mask=mask)
    tensor(5.)
    """
    input = _in_dtype(input, None, "norm")
    lowest = ord == -math.inf
    if lowest and mask is not None and not input.dtype.is_floating_point:
        _kept(input, mask, _zero)  # A mask that does not fit is reported first.
        raise AssertionError(f"input must be floating point, got {input.dtype}")
    kept = _kept(input, mask, _highest if lowest else _zero)
    return F.linalg_vector_norm(kept, ord, _dims(input, dim), keepdim, dtype=dtype)


def _variance(
    input: Any,
    dim: Any,
    unbiased: bool | None,
    correction: Any,
    keepdim: bool,
    dtype: Any,
    mask: Any,
    name: str,
) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    input = _in_dtype(input, dtype, name)
    if input.dtype.category < FLOATING:
        input = input.to(get_default_dtype())
    dims = _dims(input, dim)
    if mask is None:
        return F.var(input, dims, correction=correction, keepdim=keepdim).to(input.dtype)
    count = _count(input, dims, True, mask)
    center = F.sum(_kept(input, mask, _zero), dims, True) / count
    apart = _kept(input - center, mask, _zero)
    squares = F.real(apart * apart.conj()) if input.dtype.is_complex else apart * apart
    total = F.sum(squares, dims, keepdim)
    if not keepdim:
        count = count.reshape(sizes_of(total))
    # A fraction as correction is a float32, whatever the dtype of the input.
    return (total / F.clamp(count - correction, 0)).to(input.dtype)


@explains(name="var")
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The variance along some dimensions: the sum of squares by the count less `correction`, or 1.

    >>> import plugrad
    >>> mask = plugrad.tensor([True, True, False])
    >>> plugrad.masked.var(plugrad.tensor([1.0, 3.0, 9.0]), mask=mask)
    tensor(2.)
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, "var")


@explains(name="std")
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The root of `var`.

    >>> import plugrad
    >>> mask = plugrad.tensor([True, True, False])
    >>> plugrad.masked.std(plugrad.tensor([1.0, 3.0, 9.0]), unbiased=False, mask=mask)
    tensor(1.)
    """
    return F.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask, "std"))


@explains(name="softmax")
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """exp(input) divided by its sum along a dimension; 0 for masked-out elements, nan if all are.

    >>> import plugrad
    >>> plugrad.masked.softmax(plugrad.ones(3), 0, mask=plugrad.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    input = _in_dtype(input, dtype, "softmax")
    return F.softmax(_kept(input, mask, _lowest), _one_dim(input, dim))


@explains(name="log_softmax")
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The logarithm of `softmax`; -inf for masked-out elements.

    >>> import plugrad
    >>> plugrad.masked.log_softmax(plugrad.ones(3), 0, mask=plugrad.tensor([True, True, False]))
    tensor([-0.6931, -0.6931,    -inf])
    """
    input = _in_dtype(input, dtype, "log_softmax")
    return F.log_softmax(_kept(input, mask, _lowest), _one_dim(input, dim))


@explains(name="softmin")
def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """`softmax` of the negative input.

    >>> import plugrad
    >>> plugrad.masked.softmin(plugrad.ones(3), 0, mask=plugrad.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    input = _in_dtype(input, dtype, "softmin")
    return F.softmax(-_kept(input, mask, _highest), _one_dim(input, dim))


@explains(name="normalize")
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The input by its norm along a dimension, or by `eps` if that is greater.

    >>> import plugrad
    >>> plugrad.masked.normalize(
    ...     plugrad.tensor([3.0, 4.0, 9.0]), 2.0, 0, mask=plugrad.tensor([True, True, False])
    ... )
    tensor([0.6000, 0.8000, 0.0000])
    """
    input = _in_dtype(input, dtype, "normalize")
    kept = _kept(input, mask, _highest if ord == -math.inf else _zero)
    length = F.linalg_vector_norm(kept, ord, _dims(input, dim), True)
    least = F.full((), eps, dtype=length.dtype, device=length.device)
    return _kept(input, mask, _zero) / F.maximum(length, least)


@explains(name="logaddexp")
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Any = None,
    other_mask: Any = None,
) -> Tensor:
    """log(exp(input) + exp(other)), without the masked-out elements of either.

    >>> import plugrad
    >>> plugrad.masked.logaddexp(
    ...     plugrad.zeros(2), plugrad.zeros(2), input_mask=plugrad.tensor([True, False])
    ... )
    tensor([0.6931, 0.0000])
    """
    first = _kept(_in_dtype(input, dtype, "logaddexp"), input_mask, _lowest)
    second = _kept(_in_dtype(other, dtype, "logaddexp"), other_mask, _lowest)
    return F.logaddexp(first, second).to(first.dtype)


@explains(name="logsumexp")
def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """log(sum(exp(input))) along some dimensions, in the dtype of the input; -inf of nothing.

    >>> import plugrad
    >>> plugrad.masked.logsumexp(plugrad.zeros(3), mask=plugrad.tensor([True, True, False]))
    tensor(0.6931)
    """
    input = _in_dtype(input, dtype, "logsumexp")
    found = F.logsumexp(_kept(input, mask, _lowest), _dims(input, dim), keepdim)
    return found if found.dtype is input.dtype else found.to(input.dtype)
