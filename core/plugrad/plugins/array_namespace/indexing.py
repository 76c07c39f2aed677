"""Kernels that pick elements: by index arrays, by masks, by order.

They use the position in the flattened array and `take`, which every version of the standard has.
"""

from __future__ import annotations

import math
from typing import Any, Final

from plugrad.dispatch.backends import kernel_errors as errors
from plugrad.dispatch.backends.kernel_table import kernel
from plugrad.plugins.array_namespace.family import Family, Kernel, needs
from plugrad.plugins.array_namespace.namespace import Array, Namespace
from plugrad.plugins.array_namespace.views import at

Shape = tuple[int, ...]

# What several kernels need: to pick elements, to pick them along a dimension, to check indices.
PICKING: Final = ("reshape", "take")
ALONG: Final = ("arange", *PICKING)
CHECKING: Final = ("min", "max")


class Indexing(Family):
    """Picking by indices that are computed."""

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self.along: Kernel = (
            self._take_along_axis if namespace.has("take_along_axis") else self._take_by_position
        )

    def table(self) -> dict[str, Kernel]:
        if not self.ns.can("data-dependent shapes"):
            return {}
        candidates: dict[str, Kernel] = {
            "nonzero": self.nonzero,
            "masked_select": self.masked_select,
            "index": self.index,
        }
        return {name: method for name, method in candidates.items() if self.there(method)}

    def _outside(self, index: Array, low: int, high: int) -> int | None:
        """An index that is not in [low, high), or None. Waits for the device."""
        if 0 in index.shape:
            return None
        smallest, largest = int(self.xp.min(index)), int(self.xp.max(index))
        if smallest < low:
            return smallest
        return largest if largest >= high else None

    def _integers(self, index: Array) -> Array:
        return self.xp.astype(index, self.ns.int64, copy=False)

    def _range(self, length: int, like: Array) -> Array:
        return self.xp.arange(length, dtype=self.ns.int64, device=like.device)

    def _pick(self, a: Array, positions: Array) -> Array:
        """The elements at positions of the flattened array, in the shape of the positions."""
        flat = self.xp.reshape(positions, (-1,))
        return self.xp.reshape(self.xp.take(self.xp.reshape(a, (-1,)), flat), positions.shape)

    @kernel("index_select")
    @needs(*PICKING, *CHECKING)
    def index_select(self, a: Array, dim: int, index: Array) -> Array:
        size = a.shape[dim] if a.ndim else 1
        if self._outside(index, 0, size) is not None:
            raise IndexError(errors.OUTSIDE_TABLE)
        if a.ndim == 0:
            return self.xp.asarray(a, copy=True)
        return self.xp.take(a, self._integers(self.xp.reshape(index, (-1,))), axis=dim)

    @kernel("take")
    @needs("where", *PICKING, *CHECKING)
    def take(self, a: Array, index: Array) -> Array:
        size = math.prod(a.shape)
        outside = self._outside(index, -size, size)
        if outside is not None:
            raise IndexError(errors.out_of_range(outside, size))
        return self._pick(a, self._from_front(index, size))

    def _from_front(self, index: Array, size: int) -> Array:
        positions = self._integers(index)
        zero, length = self.ns.scalar(0, positions), self.ns.scalar(size, positions)
        return self.xp.where(positions < zero, positions + length, positions)

    @kernel("gather")
    @needs("empty", *ALONG, *CHECKING)
    def gather(self, a: Array, dim: int, index: Array) -> Array:
        if 0 in index.shape:
            return self.xp.empty(index.shape, dtype=a.dtype, device=a.device)
        source = self.xp.reshape(a, (1,)) if a.ndim == 0 else a
        where = self.xp.reshape(index, (1,)) if index.ndim == 0 else index
        outside = self._outside(where, 0, source.shape[dim])
        if outside is not None:
            raise RuntimeError(errors.out_of_bounds(outside, dim, source.shape[dim]))
        return self.xp.reshape(self.along(source, dim, self._integers(where)), index.shape)

    def _take_along_axis(self, a: Array, dim: int, index: Array) -> Array:
        for other, size in enumerate(index.shape):
            if other != dim and size != a.shape[other]:
                a = at(a, other, slice(0, size))
        return self.xp.take_along_axis(a, index, axis=dim)

    def _take_by_position(self, a: Array, dim: int, index: Array) -> Array:
        positions = index * self.ns.scalar(math.prod(a.shape[dim + 1 :]), index)
        for other, size in enumerate(index.shape):
            if other != dim:
                shape = tuple(size if axis == other else 1 for axis in range(index.ndim))
                steps = self.xp.reshape(self._range(size, index), shape)
                positions = positions + steps * self.ns.scalar(
                    math.prod(a.shape[other + 1 :]), index
                )
        return self._pick(a, positions)

    @needs("nonzero", "stack")
    def nonzero(self, a: Array) -> Array:
        if a.ndim == 0:
            found = int(bool(a))
            return self.xp.zeros((found, 0), dtype=self.ns.int64, device=a.device)
        return self._integers(self.xp.stack(self.xp.nonzero(a), axis=1))

    @needs("broadcast_arrays", "nonzero", *PICKING)
    def masked_select(self, a: Array, mask: Array) -> Array:
        values, where = self.xp.broadcast_arrays(a, mask)
        positions = self.xp.nonzero(self.xp.reshape(where, (-1,)))[0]
        return self._pick(values, positions)

    @needs(
        *("broadcast_arrays", "nonzero", "expand_dims", "permute_dims", "arange", "where"),
        *PICKING,
        *CHECKING,
    )
    def index(self, a: Array, indices: list[Array | None]) -> Array:
        """Integer arrays and masks; a mask stands for the positions where it holds."""
        spelled: list[Array | None] = []
        for item in indices:
            if item is None or not self.ns.is_bool(item):
                spelled.append(item)
            elif item.ndim:
                spelled.extend(self.xp.nonzero(item))
            else:  # a new dimension, of which all or nothing is taken
                a = self.xp.expand_dims(a, axis=len(spelled))
                spelled.append(self._range(int(bool(item)), a))
        return self._index_integers(a, spelled)

    def _index_integers(self, a: Array, indices: list[Array | None]) -> Array:
        """The indexed dimensions go to the front, and are one there; `take` picks along it."""
        indexed = [dim for dim, item in enumerate(indices) if item is not None]
        others = [dim for dim in range(a.ndim) if dim not in indexed]
        given: list[Any] = [indices[dim] for dim in indexed]
        for dim, item in zip(indexed, given, strict=True):
            outside = self._outside(item, -a.shape[dim], a.shape[dim])
            if outside is not None:
                raise IndexError(errors.out_of_bounds(outside, dim, a.shape[dim]))
        positions = self._joined(a, indexed, given)
        rest = tuple(a.shape[dim] for dim in others)
        turned = self.xp.permute_dims(a, (*indexed, *others))
        table = self.xp.reshape(turned, (math.prod(a.shape[dim] for dim in indexed), *rest))
        picked = self.xp.take(table, self.xp.reshape(positions, (-1,)), axis=0)
        result = self.xp.reshape(picked, (*positions.shape, *rest))
        if indexed != list(range(indexed[0], indexed[-1] + 1)) or indexed[0] == 0:
            return result
        # Adjacent indices keep their result in their place.
        count = positions.ndim
        before = range(count, count + indexed[0])
        after = range(count + indexed[0], result.ndim)
        return self.xp.permute_dims(result, (*before, *range(count), *after))

    def _joined(self, a: Array, indexed: list[int], given: list[Array]) -> Array:
        """Positions in the dimensions `indexed` as if those were one."""
        try:
            spread = self.xp.broadcast_arrays(*given)
        except Exception:
            raise errors.unlike_indices([item.shape for item in given]) from None
        positions: Array = None
        for dim, item in zip(indexed, spread, strict=True):
            place = self._from_front(item, a.shape[dim])
            if positions is None:
                positions = place
            else:
                positions = positions * self.ns.scalar(a.shape[dim], place) + place
        return positions

    @kernel("masked_fill")
    @needs("where")
    def masked_fill(self, a: Array, mask: Array, value: Any) -> Array:
        return self.xp.where(mask, self.ns.operand(value, a), a)


class Strides(Indexing):
    """Kernels that return parts of a memory, for arrays that need not share it."""

    def kernels(self) -> dict[str, Kernel]:
        return {"_as_strided": self.as_strided} if self.there(self.as_strided) else {}

    @needs(*ALONG)
    def as_strided(self, a: Array, size: Shape, stride: Shape, storage_offset: int) -> Array:
        if 0 in size:
            return self.xp.zeros(size, dtype=a.dtype, device=a.device)
        places = self.xp.reshape(self._range(1, a), (1,) * len(size))
        places = places + self.ns.scalar(storage_offset, places)
        for dim, (length, step) in enumerate(zip(size, stride, strict=True)):
            shape = tuple(length if axis == dim else 1 for axis in range(len(size)))
            along = self.xp.reshape(self._range(length, a), shape)
            places = places + along * self.ns.scalar(step, places)
        return self._pick(a, places)


class Sorting(Family):
    """What follows from `argsort`."""

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self.along = Indexing(namespace).along

    def _order(self, a: Array, dim: int, descending: bool) -> Array:
        """Equal elements stay in order: for descending order, the input and the result are
        reversed. (NumPy's `argsort` lacks the standard's `descending`.)"""
        keys = self.ns.without_bools(a)
        if descending:
            keys = self.xp.flip(keys, axis=dim)
        order = self.xp.argsort(keys, axis=dim, stable=True)
        order = self.xp.astype(order, self.ns.int64, copy=False)
        if not descending:
            return order
        last = self.ns.scalar(a.shape[dim] - 1, order)
        return self.xp.flip(last - order, axis=dim)

    @kernel("sort")
    @needs("argsort", "flip", *ALONG)
    def sort(self, a: Array, dim: int, descending: bool) -> tuple[Array, Array]:
        return self._first(a, None, dim, descending)

    @kernel("topk")
    @needs("argsort", "flip", *ALONG)
    def topk(self, a: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
        return self._first(a, k, dim, largest)

    def _first(self, a: Array, k: int | None, dim: int, descending: bool) -> tuple[Array, Array]:
        if a.ndim == 0:
            zero = self.xp.zeros((), dtype=self.ns.int64, device=a.device)
            return self.xp.asarray(a, copy=True), zero
        order = self._order(a, dim, descending)
        if k is not None:
            order = at(order, dim, slice(0, k))
        return self.along(a, dim, order), order
