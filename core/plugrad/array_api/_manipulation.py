"""Functions of the standard that rearrange elements, and its indexing functions."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any

from plugrad.array_api._array import publish
from plugrad.array_api._operators import F, Tensor
from plugrad.array_api._promotion import operands
from plugrad.dtype import INTEGER, int64
from plugrad.ops.composite.arrangement import broadcasting

Axes = int | tuple[int, ...]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes have together; ValueError if there is none.

    >>> from plugrad import array_api as xp
    >>> xp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(broadcasting.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(f"broadcast_shapes(): {error}") from error


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of an array in a larger shape.

    >>> from plugrad import array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]])
    """
    return F.broadcast_to(x, tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Views of arrays in the shape that they have together.

    >>> from plugrad import array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [plugrad.Size([2, 3]), plugrad.Size([2, 3])]
    """
    return tuple(broadcasting.broadcast_tensors(*arrays)) if arrays else ()


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other along an axis; with None, all their elements.

    >>> from plugrad import array_api as xp
    >>> xp.concat([xp.zeros(2), xp.ones(1)])
    Array([0., 0., 1.])
    """
    joined = operands(*arrays)
    if axis is None:
        return F.cat([F.flatten(array) for array in joined])
    if any(array.ndim != joined[0].ndim for array in joined):
        raise ValueError("concat(): arrays must have the same number of dimensions")
    return F.cat(joined, axis)


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape one after the other along a new axis.

    >>> from plugrad import array_api as xp
    >>> xp.stack([xp.zeros(2), xp.ones(2)])
    Array([[0., 0.],
           [1., 1.]])
    """
    return F.stack(operands(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of an array along an axis.

    >>> from plugrad import array_api as xp
    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))
    (Array([1, 2]), Array([3, 4]))
    """
    place = _places((axis,), x.ndim)[0]
    # The views of `unbind` must not be written to in a graph.
    return tuple(F.select(x, place, index) for index in range(x.shape[place]))


def _whole(axis: Axes) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _places(axes: tuple[int, ...], ndim: int) -> list[int]:
    """Axes counted from the front; IndexError out of range, ValueError for repeated ones."""
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"axis {axis} is out of range for an array with {ndim} dimensions")
    found = [axis % ndim for axis in axes]
    if len(set(found)) != len(found):
        raise ValueError(f"an axis is repeated in {axes}")
    return found


def expand_dims(x: Tensor, /, axis: Axes) -> Tensor:
    """A view with new axes of length 1 at the given places of the result.

    >>> from plugrad import array_api as xp
    >>> xp.expand_dims(xp.ones((2, 3)), axis=1).shape
    plugrad.Size([2, 1, 3])
    """
    axes = _whole(axis)
    for place in sorted(_places(axes, x.ndim + len(axes))):
        x = F.unsqueeze(x, place)
    return x


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without axes of length 1; ValueError for an axis of another length.

    >>> from plugrad import array_api as xp
    >>> xp.squeeze(xp.ones((2, 1, 3)), axis=1).shape
    plugrad.Size([2, 3])
    """
    places = _places(_whole(axis), x.ndim)
    for place in places:
        if x.shape[place] != 1:
            raise ValueError(f"squeeze(): axis {place} has length {x.shape[place]}, not 1")
    return F.squeeze(x, tuple(places))


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Elements in reverse order along axes, by default along all.

    >>> from plugrad import array_api as xp
    >>> xp.flip(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4],
           [1, 2]])
    """
    return F.flip(x, tuple(range(x.ndim)) if axis is None else _whole(axis))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A view with axes moved to other places; the others keep their order.

    >>> from plugrad import array_api as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    plugrad.Size([3, 4, 2])
    """
    return F.movedim(x, _whole(source), _whole(destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the axes in another order.

    >>> from plugrad import array_api as xp
    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    plugrad.Size([4, 2, 3])
    """
    return F.permute(x, tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged.

    >>> from plugrad import array_api as xp
    >>> xp.matrix_transpose(xp.ones((5, 2, 3))).shape
    plugrad.Size([5, 3, 2])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): x must have two dimensions or more, not {x.ndim}")
    return F.transpose(x, -1, -2)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, or slice along an axis, several times.

    >>> from plugrad import array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), 2)
    Array([1, 1, 2, 2])
    """
    times: Any = repeats
    if isinstance(repeats, Tensor):
        if repeats.dtype.category != INTEGER:
            raise TypeError(f"repeat(): repeats must be integers, not {repeats.dtype!r}")
        times = repeats.to(int64)
        if times.numel() == 1:
            length = x.numel() if axis is None else x.shape[axis]
            times = times.reshape(1).expand(length)
    return F.repeat_interleave(x, times, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape, a view where that is possible.

    Args:
        copy: True always copies, False raises ValueError instead of copying.

    >>> from plugrad import array_api as xp
    >>> xp.reshape(xp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]])
    """
    sizes = tuple(shape)
    if copy is False:
        try:
            return x.view(sizes)
        except RuntimeError as error:
            raise ValueError(f"reshape(): this needs a copy: {error}") from error
    found = F.reshape(x, sizes)
    return F.clone(found) if copy else found


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """Elements moved along axes; elements that leave at the end reappear at the start.

    >>> from plugrad import array_api as xp
    >>> xp.roll(xp.arange(4), 1)
    Array([3, 0, 1, 2])
    """
    if axis is None:
        return F.roll(x, shift)
    axes = _whole(axis)
    shifts = _whole(shift)
    return F.roll(x, shifts * len(axes) if len(shifts) == 1 else shifts, axes)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array several times along each axis.

    >>> from plugrad import array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2,))
    Array([1, 2, 1, 2])
    """
    return F.tile(x, tuple(repetitions))


def _along(axis: int, ndim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * _places((axis,), ndim)[0] + (index,)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices of an array along an axis; negative indices count from the end.

    >>> from plugrad import array_api as xp
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0]))
    Array([30, 10])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): axis must be given for an array with {x.ndim} dimensions")
        axis = 0
    found: Tensor = x[_along(axis, x.ndim, indices.to(int64))]
    return found


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements along an axis, by indices for each place of the others.

    >>> from plugrad import array_api as xp
    >>> x = xp.asarray([[3, 1], [2, 4]])
    >>> xp.take_along_axis(x, xp.argsort(x), axis=-1)
    Array([[1, 3],
           [2, 4]])
    """
    if indices.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis(): x has {x.ndim} dimensions and indices has {indices.ndim}; they "
            "must have as many"
        )
    places = indices.to(int64)
    length = x.shape[_places((axis,), x.ndim)[0]]
    return F.take_along_dim(x, F.where(places < 0, places + length, places), axis)


publish(globals())
