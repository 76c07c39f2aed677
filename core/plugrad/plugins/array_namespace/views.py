"""Kernels that reshape or slice arrays, and kernels that join and reorder them.

The standard does not define whether a reshaped array shares memory. With `mutable=False` it does
not matter, since arrays are never written to.
"""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_table import kernel
from plugrad.plugins.array_namespace.family import Family, needs
from plugrad.plugins.array_namespace.namespace import Array

Shape = tuple[int, ...]


def at(a: Array, dim: int, part: Any) -> Array:
    """`a` indexed in one dimension only."""
    place = [slice(None)] * a.ndim
    place[dim] = part
    # With an ellipsis, a single element is an array that shares memory, too.
    return a[(*place, ...)]


class Views(Family):
    """Shapes, parts, joins."""

    @kernel("view", "_unsafe_view")
    @needs("reshape")
    def view(self, a: Array, size: Shape) -> Array:
        return self.xp.reshape(a, size)

    @kernel("permute")
    @needs("permute_dims")
    def permute(self, a: Array, dims: Shape) -> Array:
        return self.xp.permute_dims(a, dims)

    @kernel("transpose")
    @needs("permute_dims")
    def transpose(self, a: Array, dim0: int, dim1: int) -> Array:
        order = list(range(a.ndim))
        if a.ndim:
            order[dim0], order[dim1] = order[dim1], order[dim0]
        return self.xp.permute_dims(a, tuple(order))

    @kernel("t")
    @needs("permute_dims")
    def t(self, a: Array) -> Array:
        return self.xp.permute_dims(a, tuple(range(a.ndim))[::-1])

    @kernel("unsqueeze")
    @needs("expand_dims")
    def unsqueeze(self, a: Array, dim: int) -> Array:
        return self.xp.expand_dims(a, axis=dim)

    @kernel("squeeze")
    @needs("squeeze")
    def squeeze(self, a: Array, dims: Shape) -> Array:
        return self.xp.squeeze(a, axis=dims) if dims else a

    @kernel("expand")
    @needs("broadcast_to")
    def expand(self, a: Array, size: Shape) -> Array:
        return self.xp.broadcast_to(a, size)

    @kernel("select")
    def select(self, a: Array, dim: int, index: int) -> Array:
        return at(a, dim, index)

    @kernel("slice")
    def slice(self, a: Array, dim: int, start: int, end: int, step: int) -> Array:
        return at(a, dim, slice(start, end, step))

    @kernel("split", "split_with_sizes")
    def split(self, a: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        parts = zip(ends, sizes, strict=True)
        return tuple(at(a, dim, slice(end - size, end)) for end, size in parts)

    @kernel("unbind")
    def unbind(self, a: Array, dim: int) -> tuple[Array, ...]:
        return tuple(at(a, dim, index) for index in range(a.shape[dim]))

    @kernel("view_as_real")
    @needs("real", "imag", "stack")
    def view_as_real(self, a: Array) -> Array:
        return self.xp.stack([self.xp.real(a), self.xp.imag(a)], axis=-1)

    @kernel("cat")
    @needs("concat")
    def cat(self, arrays: list[Array], dim: int) -> Array:
        return self.xp.concat(arrays, axis=dim)

    @kernel("stack")
    @needs("stack")
    def stack(self, arrays: list[Array], dim: int) -> Array:
        return self.xp.stack(arrays, axis=dim)

    @kernel("flip")
    @needs("flip")
    def flip(self, a: Array, dims: Shape) -> Array:
        return self.xp.flip(a, axis=dims) if dims else self.xp.asarray(a, copy=True)

    @kernel("roll")
    @needs("roll")
    def roll(self, a: Array, shifts: Shape, dims: Shape) -> Array:
        if dims:
            return self.xp.roll(a, shifts, axis=dims)
        return self.xp.roll(a, shifts[0])

    @kernel("repeat")
    @needs("tile")
    def repeat(self, a: Array, repeats: Shape) -> Array:
        return self.xp.tile(a, repeats)

    @kernel("tril")
    @needs("tril")
    def tril(self, a: Array, diagonal: int) -> Array:
        return self.xp.tril(a, k=diagonal)

    @kernel("triu")
    @needs("triu")
    def triu(self, a: Array, diagonal: int) -> Array:
        return self.xp.triu(a, k=diagonal)
