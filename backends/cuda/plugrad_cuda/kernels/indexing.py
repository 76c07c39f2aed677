"""Kernels that read and write elements by index arrays and masks.

CuPy wraps around indices that are out of range, so the kernels check them first. That waits for the
device, unless `Namespace.check` is off or a graph is being captured.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad.plugins import kernel_errors as errors
from plugrad_cuda.kernels.family import INT64, Family, scalar
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace
from plugrad_cuda.kernels.scattering import add_at, write_at
from plugrad_cuda.kernels.views import at


def _outside(xp: Any, index: Array, low: int, high: int) -> Any:
    return (index < low) | (index >= high)


def _from_front(xp: Any, index: Array, size: int) -> Any:
    return xp.where(index < 0, index + size, index)


class Indexing(Family):
    """Gathering and scattering."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.outside = self.fused(_outside)
        self.from_front = self.fused(_from_front)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "gather": self.gather,
            "scatter.value": self.scatter_value,
            "scatter.src": self.scatter,
            "scatter_.value": self.scatter_value_,
            "scatter_.src": self.scatter_,
            "scatter_add": self.scatter_add,
            "scatter_add_": self.scatter_add_,
            "index_select": self.index_select,
            "index_add": self.index_add,
            "index_add_": self.index_add_,
            "index_copy": self.index_copy,
            "index_fill": self.index_fill,
            "index": self.index,
            "index_put": self.index_put,
            "index_put_": self.index_put_,
            "masked_fill": self.masked_fill,
            "masked_fill_": self.masked_fill_,
            "masked_select": self.masked_select,
            "masked_scatter": self.masked_scatter,
            "take": self.take,
            "nonzero": self.nonzero,
        }

    def wrong(self, index: Array, low: int, high: int) -> int | None:
        """An index that is not in [low, high), or None."""
        if index.size == 0 or not self.ns.may_wait():
            return None
        bad = self.outside(index, low, high).reshape(-1)
        if not bool(self.xp.any(bad)):
            return None
        return int(index.reshape(-1)[self.xp.argmax(bad)])

    def check_range(self, index: Array, size: int, dim: int, *, wrap: bool = False) -> None:
        found = self.wrong(index, -size if wrap else 0, size)
        if found is not None:
            message = errors.out_of_bounds(found, dim, size)
            raise IndexError(message) if wrap else RuntimeError(message)

    def place(self, index: Array, dim: int) -> tuple[Array, ...]:
        """Index arrays for all dimensions: `index` for `dim`, its own position for the others."""
        return tuple(
            [
                index
                if axis == dim
                else self.xp.arange(size).reshape((size,) + (1,) * (index.ndim - axis - 1))
                for axis, size in enumerate(index.shape)
            ]
        )

    def gather(self, array: Array, dim: int, index: Array) -> Array:
        if index.size == 0:
            return self.xp.empty(index.shape, array.dtype)
        source, where = _with_a_dim(array), _with_a_dim(index)
        self.check_range(where, source.shape[dim], dim)
        return source[self.place(where, dim)].reshape(index.shape)

    def scatter_into(self, target: Array, dim: int, index: Array, src: Any, add: bool) -> Array:
        if index.size == 0:
            return target
        into, where = _with_a_dim(target), _with_a_dim(index)
        self.check_range(where, into.shape[dim], dim)
        values = src
        if self.is_array(src) and src.ndim:
            values = src[tuple([slice(size) for size in where.shape])]
        if add:
            add_at(self.ns, into, self.place(where, dim), values)
        else:
            write_at(self.ns, into, self.place(where, dim), values)
        return target

    def scatter(self, array: Array, dim: int, index: Array, src: Array) -> Array:
        return self.scatter_into(array.copy(), dim, index, src, False)

    def scatter_value(self, array: Array, dim: int, index: Array, value: Any) -> Array:
        return self.scatter_value_(array.copy(), dim, index, value)

    def scatter_(self, array: Array, dim: int, index: Array, src: Array) -> Array:
        return self.scatter_into(array, dim, index, src, False)

    def scatter_value_(self, array: Array, dim: int, index: Array, value: Any) -> Array:
        return self.scatter_into(array, dim, index, scalar(value, array.dtype), False)

    def scatter_add(self, array: Array, dim: int, index: Array, src: Array) -> Array:
        return self.scatter_into(array.copy(), dim, index, src, True)

    def scatter_add_(self, array: Array, dim: int, index: Array, src: Array) -> Array:
        return self.scatter_into(array, dim, index, src, True)

    def index_select(self, array: Array, dim: int, index: Array) -> Array:
        size = array.shape[dim] if array.ndim else 1
        if self.wrong(index, 0, size) is not None:
            raise IndexError(errors.OUTSIDE_TABLE)
        if array.ndim == 0:
            return array.copy()
        return self.xp.take(array, index.reshape(-1), axis=dim)

    def index_add(self, array: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
        return self.index_add_(array.copy("C"), dim, index, source, alpha)

    def index_add_(self, array: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
        into, where = _with_a_dim(array), index.reshape(-1)
        if array.ndim > 1:
            self.check_range(where, into.shape[dim], dim)
        elif self.wrong(where, 0, into.shape[dim]) is not None:
            raise IndexError(errors.OUTSIDE_TABLE)
        values = _with_a_dim(source)
        if alpha != 1:
            values = values * scalar(alpha, values.dtype)
        if where.size:
            add_at(self.ns, into, (*(slice(None),) * dim, where), values)
        return array

    def index_copy(self, array: Array, dim: int, index: Array, source: Array) -> Array:
        result = array.copy()
        into, where = _with_a_dim(result), index.reshape(-1)
        found = self.wrong(where, 0, into.shape[dim])
        if found is not None:
            raise IndexError(f"index_copy_(): {errors.out_of_bounds(found, dim, into.shape[dim])}")
        if where.size:
            write_at(self.ns, into, at(dim, where), _with_a_dim(source))
        return result

    def index_fill(self, array: Array, dim: int, index: Array, value: Any) -> Array:
        result = array.copy()
        into, where = _with_a_dim(result), index.reshape(-1)
        self.check_range(where, into.shape[dim], dim, wrap=True)
        if where.size:
            filling = value if self.is_array(value) else scalar(value, array.dtype)
            into[at(dim, where)] = filling
        return result

    def spelled(self, array: Array, indices: list[Array | None]) -> tuple[Array, tuple[Any, ...]]:
        """The array, and an index for it without masks: positions where they hold instead.

        Raises IndexError for an index out of range, and for shapes that do not broadcast.
        """
        found: list[Any] = []
        shapes: list[tuple[int, ...]] = []
        for item in indices:
            if item is None:
                found.append(slice(None))
            elif item.dtype.kind != "b":
                self.check_index(item, array.shape[len(found)], len(found))
                found.append(item)
                shapes.append(item.shape)
            elif item.ndim == 0:  # a new dimension, of which all or nothing is taken
                array = array[at(len(found), None)]
                found.append(self.xp.arange(int(bool(item))))
                shapes.append(found[-1].shape)
            else:
                found.extend(self.xp.nonzero(item))
                shapes.append(found[-1].shape)
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise errors.unlike_indices(shapes) from None
        return array, tuple(found)

    def check_index(self, index: Array, size: int, dim: int) -> None:
        if size == 0 and index.size:
            raise IndexError(errors.OUTSIDE_EMPTY)
        self.check_range(index, size, dim, wrap=True)

    def index(self, array: Array, indices: list[Array | None]) -> Array:
        source, where = self.spelled(array, indices)
        if all(isinstance(item, slice) for item in where):
            return source.copy()
        return source[where]

    def index_put(
        self, array: Array, indices: list[Array | None], values: Array, accumulate: bool
    ) -> Array:
        return self.index_put_(array.copy(), indices, values, accumulate)

    def index_put_(
        self, array: Array, indices: list[Array | None], values: Array, accumulate: bool
    ) -> Array:
        target, where = self.spelled(array, indices)
        wanted = _shape_of(target.shape, where)
        try:
            fits = np.broadcast_shapes(values.shape, wanted) == wanted
        except ValueError:
            fits = False
        if not fits:
            raise errors.unlike_values(values.shape, wanted)
        if 0 in wanted:
            return array
        if accumulate:
            add_at(self.ns, target, where, values)
        else:
            write_at(self.ns, target, where, values)
        return array

    def masked_fill(self, array: Array, mask: Array, value: Any) -> Array:
        filling = value if self.is_array(value) else scalar(value, array.dtype)
        return self.xp.where(mask, filling, array).astype(array.dtype, copy=False)

    def masked_fill_(self, array: Array, mask: Array, value: Any) -> Array:
        filling = value if self.is_array(value) else scalar(value, array.dtype)
        self.xp.copyto(array, filling, casting="unsafe", where=mask)
        return array

    def masked_select(self, array: Array, mask: Array) -> Array:
        shape = np.broadcast_shapes(array.shape, mask.shape)
        values = self.xp.broadcast_to(array, shape).reshape(-1)
        return values[self.xp.nonzero(self.xp.broadcast_to(mask, shape).reshape(-1))[0]]

    def masked_scatter(self, array: Array, mask: Array, source: Array) -> Array:
        shape = np.broadcast_shapes(array.shape, mask.shape)
        result = self.xp.broadcast_to(array, shape).copy("C")
        where = self.xp.nonzero(self.xp.broadcast_to(mask, shape).reshape(-1))[0]
        if source.size < where.size:
            raise RuntimeError(errors.TOO_FEW_ELEMENTS)
        if where.size:
            result.reshape(-1)[where] = source.reshape(-1)[: where.size]
        return result

    def take(self, array: Array, index: Array) -> Array:
        size = math.prod(array.shape)
        found = self.wrong(index, -size, size)
        if found is not None:
            raise IndexError(errors.out_of_range(found, size))
        return self.xp.take(array.reshape(-1), self.from_front(index, size))

    def nonzero(self, array: Array) -> Array:
        if array.ndim == 0:
            return self.xp.zeros((int(bool(array)), 0), INT64)
        return self.xp.argwhere(self.truth(array))


def _with_a_dim(array: Array) -> Array:
    return array.reshape(1) if array.ndim == 0 else array


def _shape_of(shape: tuple[int, ...], where: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of what an index of slices and arrays picks."""
    indexed = [dim for dim, item in enumerate(where) if not isinstance(item, slice)]
    if not indexed:
        return shape
    joined = np.broadcast_shapes(*[where[dim].shape for dim in indexed])
    others = [dim for dim in range(len(shape)) if dim not in indexed]
    adjacent = indexed == list(range(indexed[0], indexed[-1] + 1))
    before = [shape[dim] for dim in others if adjacent and dim < indexed[0]]
    after = [shape[dim] for dim in others if not (adjacent and dim < indexed[0])]
    return (*before, *joined, *after)
