"""Functions of the standard that sort, search and find unique elements."""

from __future__ import annotations

# Interpreted: loaded on demand.
from builtins import bool as _bool
from typing import NamedTuple

from plugrad.array_api._array import publish
from plugrad.array_api._operators import F, Tensor
from plugrad.array_api._promotion import operands, result_type
from plugrad.dtype import BOOL, COMPLEX, bool_, int64, uint8


def _order(x: Tensor, axis: int, descending: _bool) -> Tensor:
    """The original positions of the sorted elements; equal ones stay in order. Complex numbers are
    in the order of their real parts, then of their imaginary ones."""
    if x.dtype.category != COMPLEX:
        keys = x.to(uint8) if x.dtype.category == BOOL else x
        return F.argsort(keys, stable=True, dim=axis, descending=descending)
    by_imag = F.argsort(F.imag(x), stable=True, dim=axis, descending=descending)
    reals = F.take_along_dim(F.real(x), by_imag, axis)
    by_real = F.argsort(reals, stable=True, dim=axis, descending=descending)
    return F.take_along_dim(by_imag, by_real, axis)


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: _bool = False, stable: _bool = True
) -> Tensor:
    """The indices that sort an array along an axis.

    >>> from plugrad import array_api as xp
    >>> xp.argsort(xp.asarray([30, 10, 20]))
    Array([1, 2, 0])
    """
    return _order(x, axis, descending)


def sort(
    x: Tensor, /, *, axis: int = -1, descending: _bool = False, stable: _bool = True
) -> Tensor:
    """The elements in order along an axis.

    >>> from plugrad import array_api as xp
    >>> xp.sort(xp.asarray([30, 10, 20]), descending=True)
    Array([30, 20, 10])
    """
    if x.dtype.category == COMPLEX:
        return F.take_along_dim(x, _order(x, axis, descending), axis)
    return F.sort(x, stable=stable, dim=axis, descending=descending)[0]


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: _bool = False) -> Tensor:
    """The index of the largest element along an axis, or among all; the first of equal ones.

    >>> from plugrad import array_api as xp
    >>> xp.argmax(xp.asarray([1, 5, 2]))
    Array(1)
    """
    return F.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: _bool = False) -> Tensor:
    """The index of the smallest element along an axis, or among all; the first of equal ones.

    >>> from plugrad import array_api as xp
    >>> xp.argmin(xp.asarray([[3, 1], [0, 2]]), axis=1)
    Array([1, 0])
    """
    return F.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, one array for each dimension.

    >>> from plugrad import array_api as xp
    >>> xp.nonzero(xp.asarray([0, 5, 7]))
    (Array([1, 2]),)
    """
    if x.ndim == 0:
        raise ValueError("nonzero(): x must have a dimension")
    return tuple(F.unbind(F.nonzero(x), 1))


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: str = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Where elements of `x2` would have to be inserted into `x1`, which is sorted.

    Args:
        side: "left" of equal elements, or "right".
        sorter: indices that sort `x1`, if it is not.

    >>> from plugrad import array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
    Array([1, 2])
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side must be 'left' or 'right', got {side!r}")
    row, values = operands(x1, x2)
    if sorter is not None:
        row = F.index_select(row, 0, sorter.to(int64))
    return F.searchsorted(row, values, side=side)


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Elements of `x1` where the condition is true, of `x2` elsewhere.

    >>> from plugrad import array_api as xp
    >>> x = xp.asarray([-1.0, 2.0])
    >>> xp.where(x > 0, x, 0.0)
    Array([0., 2.])
    """
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        a, b = operands(x1, x2)
    else:
        kind = result_type(x1, x2)
        a, b = (F.full((), x, dtype=kind, device=condition.device) for x in (x1, x2))
    return F.where(condition.to(bool_), a, b)


class unique_all_result(NamedTuple):
    """The distinct values, their first indices, the inverse indices and their counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class unique_counts_result(NamedTuple):
    """The distinct values and their counts."""

    values: Tensor
    counts: Tensor


class unique_inverse_result(NamedTuple):
    """The distinct values and the inverse indices."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> unique_all_result:
    """The distinct values of an array in order; nans are all distinct.

    >>> from plugrad import array_api as xp
    >>> xp.unique_all(xp.asarray([2, 1, 2])).indices
    Array([1, 0])
    """
    flat = F.flatten(x)
    order = _order(flat, 0, False)
    values = F.index_select(flat, 0, order)
    first = F.ones_like(order, dtype=bool_)
    if flat.numel() > 1:
        first = F.cat([first[:1], values[1:] != values[:-1]])
    starts = F.flatten(F.nonzero(first))
    number = F.cumsum(first, 0) - 1
    inverse = F.index_select(number, 0, F.argsort(order, stable=True))
    ends = F.cat([starts[1:], F.full_like(starts[:1], flat.numel())])
    return unique_all_result(
        F.index_select(values, 0, starts),
        F.index_select(order, 0, starts),
        F.reshape(inverse, tuple(x.shape)),
        ends - starts,
    )


def unique_counts(x: Tensor, /) -> unique_counts_result:
    """The distinct values of an array in order, and their counts.

    >>> from plugrad import array_api as xp
    >>> found = xp.unique_counts(xp.asarray([2, 1, 2]))
    >>> found.values, found.counts
    (Array([1, 2]), Array([1, 2]))
    """
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> unique_inverse_result:
    """The distinct values of an array in order, and the inverse indices.

    >>> from plugrad import array_api as xp
    >>> found = xp.unique_inverse(xp.asarray([2, 1, 2]))
    >>> found.values[found.inverse_indices]
    Array([2, 1, 2])
    """
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct values of an array in order.

    >>> from plugrad import array_api as xp
    >>> xp.unique_values(xp.asarray([2, 1, 2]))
    Array([1, 2])
    """
    return unique_all(x).values


def isin(x1: Tensor | float, x2: Tensor | float, /, *, invert: _bool = False) -> Tensor:
    """Which elements of `x1` are in `x2`, or are not with `invert`.

    >>> from plugrad import array_api as xp
    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([3, 1]))
    Array([ True, False,  True])
    """
    elements, pool = operands(x1, x2)
    among = (F.unsqueeze(elements, -1) == F.flatten(pool)).any(-1)
    return ~among if invert else among


publish(globals())
