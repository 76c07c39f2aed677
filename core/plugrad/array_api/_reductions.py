"""Statistical functions of the standard, and `all`, `any`, `diff` and `count_nonzero`."""

from __future__ import annotations

# Interpreted: loaded on demand.
from builtins import bool as _bool
from typing import Any

from plugrad.array_api._array import publish
from plugrad.array_api._operators import F, Tensor, own
from plugrad.array_api._promotion import operands
from plugrad.dtype import INTEGER, DType, bool_, int64, uint64

Axes = int | tuple[int, ...]


def _ready(x: Tensor, axis: Axes | None) -> tuple[Tensor, tuple[int, ...], _bool]:
    """What to reduce, over which dimensions, and whether one was added for that.

    With no axes each element is reduced by itself, where PyTorch would reduce them all.
    """
    if axis == ():
        return F.unsqueeze(x, -1), (-1,), True
    if axis is None:
        return x, tuple(range(x.ndim)), False
    return x, (axis,) if isinstance(axis, int) else tuple(axis), False


def _reduced(
    operator: Any, x: Tensor, axis: Axes | None, keepdims: _bool, **options: Any
) -> Tensor:
    ready, dims, added = _ready(x, axis)
    found: Tensor = operator(ready, dims, keepdim=keepdims and not added, **options)
    return found


def accumulator(x: Tensor, dtype: DType | None) -> DType:
    """The dtype of a sum or a product: of integers at least 64 bits."""
    if dtype is not None:
        return dtype
    if x.dtype.category > INTEGER:
        return x.dtype
    if x.dtype.category == INTEGER and not x.dtype.is_signed:
        return uint64
    return int64


def sum(
    x: Tensor,
    /,
    *,
    axis: Axes | None = None,
    dtype: DType | None = None,
    keepdims: _bool = False,
) -> Tensor:
    """The sum over axes, by default over all; of integers in 64 bits.

    >>> from plugrad import array_api as xp
    >>> xp.sum(xp.asarray([100, 100], dtype=xp.int8))
    Array(200)
    """
    return _reduced(F.sum, x, axis, keepdims, dtype=accumulator(x, dtype))


def prod(
    x: Tensor,
    /,
    *,
    axis: Axes | None = None,
    dtype: DType | None = None,
    keepdims: _bool = False,
) -> Tensor:
    """The product over axes, by default over all; of integers in 64 bits.

    >>> from plugrad import array_api as xp
    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([3, 8])
    """
    kind = accumulator(x, dtype)
    ready, dims, added = _ready(x, axis)
    if added or not dims:
        return ready.reshape(x.shape).to(kind, copy=True)
    keep = keepdims and not added
    for dim in sorted((dim % x.ndim for dim in dims), reverse=True):
        ready = F.prod(ready, dim, keep, dtype=kind)
    return own(ready)


def mean(x: Tensor, /, *, axis: Axes | None = None, keepdims: _bool = False) -> Tensor:
    """The mean over axes, by default over all.

    >>> from plugrad import array_api as xp
    >>> xp.mean(xp.asarray([[1.0, 2.0], [3.0, 6.0]]), axis=1)
    Array([1.5000, 4.5000])
    """
    return _reduced(F.mean, x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: _bool = False
) -> Tensor:
    """The variance over axes: squares are divided by their number less `correction`.

    >>> from plugrad import array_api as xp
    >>> xp.var(xp.asarray([1.0, 3.0]), correction=1)
    Array(2.)
    """
    return _reduced(F.var, x, axis, keepdims, correction=correction)


def std(
    x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: _bool = False
) -> Tensor:
    """The standard deviation over axes: the root of `var`.

    >>> from plugrad import array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0]))
    Array(1.)
    """
    return own(_reduced(F.std, x, axis, keepdims, correction=correction))


def max(x: Tensor, /, *, axis: Axes | None = None, keepdims: _bool = False) -> Tensor:
    """The largest element over axes, by default over all; nan if there is one.

    >>> from plugrad import array_api as xp
    >>> xp.max(xp.asarray([[1, 5], [7, 2]]), axis=1)
    Array([5, 7])
    """
    return own(_reduced(F.amax, x, axis, keepdims))


def min(x: Tensor, /, *, axis: Axes | None = None, keepdims: _bool = False) -> Tensor:
    """The smallest element over axes, by default over all; nan if there is one.

    >>> from plugrad import array_api as xp
    >>> xp.min(xp.asarray([[1, 5], [7, 2]]), axis=1)
    Array([1, 2])
    """
    return own(_reduced(F.amin, x, axis, keepdims))


def all(x: Tensor, /, *, axis: Axes | None = None, keepdims: _bool = False) -> Tensor:
    """Whether all elements over axes are true, or not zero.

    >>> from plugrad import array_api as xp
    >>> xp.all(xp.asarray([[True, False], [True, True]]), axis=1)
    Array([False,  True])
    """
    return _reduced(F.all, x.to(bool_), axis, keepdims)


def any(x: Tensor, /, *, axis: Axes | None = None, keepdims: _bool = False) -> Tensor:
    """Whether an element over axes is true, or not zero.

    >>> from plugrad import array_api as xp
    >>> xp.any(xp.asarray([[False, False], [True, False]]), axis=1)
    Array([False,  True])
    """
    return _reduced(F.any, x.to(bool_), axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes | None = None, keepdims: _bool = False) -> Tensor:
    """How many elements over axes are not zero.

    >>> from plugrad import array_api as xp
    >>> xp.count_nonzero(xp.asarray([0, 5, 7]))
    Array(2)
    """
    return _reduced(F.sum, x.to(bool_), axis, keepdims, dtype=int64)


def _cumulated(
    operator: Any, first: int, x: Tensor, axis: int | None, dtype: DType | None, initial: _bool
) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"axis must be given for an array with {x.ndim} dimensions")
        axis = 0
    kind = accumulator(x, dtype)
    if x.ndim == 0:
        x = x.reshape(1)
    found: Tensor = operator(x, axis, dtype=kind)
    if not initial:
        return found
    shape = list(found.shape)
    shape[axis] = 1
    start = F.full(tuple(shape), first, dtype=kind, device=x.device)
    return F.cat([start, found], axis)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: _bool = False,
) -> Tensor:
    """Sums of the elements so far along an axis; `include_initial` puts a 0 before them.

    >>> from plugrad import array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6])
    """
    return _cumulated(F.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: _bool = False,
) -> Tensor:
    """Products of the elements so far along an axis; `include_initial` puts a 1 before them.

    >>> from plugrad import array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
    Array([1, 2, 6])
    """
    return own(_cumulated(F.cumprod, 1, x, axis, dtype, include_initial))


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along an axis, `n` times over.

    >>> from plugrad import array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9]))
    Array([3, 5])
    """
    parts = operands(*(part for part in (prepend, x, append) if part is not None))
    joined = F.cat(parts, axis) if len(parts) > 1 else x
    return F.diff(joined, n, axis)


publish(globals())
