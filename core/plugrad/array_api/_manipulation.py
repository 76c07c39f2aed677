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
    """The shape that arrays of these shapes have together; ValueError if there is none."""
    try:
        return tuple(broadcasting.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(f"broadcast_shapes(): {error}") from error


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of an array in a larger shape."""
    return F.broadcast_to(x, tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Views of arrays in the shape that they have together."""
    return tuple(broadcasting.broadcast_tensors(*arrays)) if arrays else ()


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other along an axis; with None, all their elements."""
    joined = operands(*arrays)
    if axis is None:
        return F.cat([F.flatten(array) for array in joined])
    if any(array.ndim != joined[0].ndim for array in joined):
        raise ValueError("concat(): arrays must have the same number of dimensions")
    return F.cat(joined, axis)


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape one after the other along a new axis."""
    return F.stack(operands(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of an array along an axis."""
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
    """A view with new axes of length 1 at the given places of the result."""
    axes = _whole(axis)
    for place in sorted(_places(axes, x.ndim + len(axes))):
        x = F.unsqueeze(x, place)
    return x


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without axes of length 1; ValueError for an axis of another length."""
    places = _places(_whole(axis), x.ndim)
    for place in places:
        if x.shape[place] != 1:
            raise ValueError(f"squeeze(): axis {place} has length {x.shape[place]}, not 1")
    return F.squeeze(x, tuple(places))


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Elements in reverse order along axes, by default along all."""
    return F.flip(x, tuple(range(x.ndim)) if axis is None else _whole(axis))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A view with axes moved to other places; the others keep their order."""
    return F.movedim(x, _whole(source), _whole(destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the axes in another order."""
    return F.permute(x, tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): x must have two dimensions or more, not {x.ndim}")
    return F.transpose(x, -1, -2)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, or slice along an axis, several times."""
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
    """Elements moved along axes; elements that leave at the end reappear at the start."""
    if axis is None:
        return F.roll(x, shift)
    axes = _whole(axis)
    shifts = _whole(shift)
    return F.roll(x, shifts * len(axes) if len(shifts) == 1 else shifts, axes)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array several times along each axis."""
    return F.tile(x, tuple(repetitions))


def _along(axis: int, ndim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * _places((axis,), ndim)[0] + (index,)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices of an array along an axis; negative indices count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): axis must be given for an array with {x.ndim} dimensions")
        axis = 0
    found: Tensor = x[_along(axis, x.ndim, indices.to(int64))]
    return found


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements along an axis, by indices for each place of the others."""
    if indices.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis(): x has {x.ndim} dimensions and indices has {indices.ndim}; they "
            "must have as many"
        )
    places = indices.to(int64)
    length = x.shape[_places((axis,), x.ndim)[0]]
    return F.take_along_dim(x, F.where(places < 0, places + length, places), axis)


publish(globals())
