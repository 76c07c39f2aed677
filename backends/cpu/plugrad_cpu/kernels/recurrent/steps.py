"""What kernels of recurrent layers share: packed sequences, and functions that work in place.

The sequences of a packed batch are sorted, longest first, so those that have not ended at a time
are the first ones. `parts` are arrays (n, H) by time, n being how many sequences there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import loops_for

Array = Any
Sizes = Sequence[int]

_COMPUTED: Final = (np.dtype(np.float32), np.dtype(np.float64))


def declines(*arrays: Array) -> bool:
    """Whether the dtype is one that is computed step by step in another: 16 bits."""
    return arrays[0].dtype not in _COMPUTED


def loops_of(gates: Array) -> Any:
    """Compiled loops over the elements of a step; None if NumPy's functions do it."""
    return loops_for("recurrent", gates.size) if gates.dtype == np.float32 else None


def times_of(sizes: Sizes, reverse: bool) -> Iterable[int]:
    """The times in the order of the steps."""
    return range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes))


def _are_equal(sizes: Sizes) -> bool:
    return sizes[0] == sizes[-1]


def split(rows: Array, sizes: Sizes) -> list[Array]:
    """Parts of (N, anything); each is a view."""
    if _are_equal(sizes):
        return list(rows.reshape(len(sizes), sizes[0], rows.shape[1]))
    found, first = [], 0
    for size in sizes:
        found.append(rows[first : first + size])
        first += size
    return found


def split_planes(memory: Array, sizes: Sizes, count: int) -> list[Array]:
    """Parts of (count * N, H), (count, n, H) each."""
    width = memory.shape[1]
    if _are_equal(sizes):
        return list(memory.reshape(len(sizes), count, sizes[0], width))
    sized = split(memory, [count * size for size in sizes])
    return [part.reshape(count, n, width) for part, n in zip(sized, sizes, strict=True)]


def resized(state: Array, start: Array, size: int) -> Array:
    """A state for another number of sequences: some have ended, or begin with `start`."""
    have = len(state)
    if size <= have:
        return state if size == have else state[:size]
    return np.concatenate((state, start[have:size]))


def states_before(parts: list[Array], start: Array, sizes: Sizes, reverse: bool) -> list[Array]:
    """The states that the steps began with, by time."""
    if _are_equal(sizes):
        return [*parts[1:], start] if reverse else [start, *parts[:-1]]
    found: list[Any] = [None] * len(sizes)
    state = start
    for time in times_of(sizes, reverse):
        found[time] = resized(state, start, sizes[time])
        state = parts[time]
    return found


def last_states(parts: list[Array], sizes: Sizes, reverse: bool) -> Array:
    """The state of each sequence after its last step, (B, H)."""
    if reverse or _are_equal(sizes):
        return parts[0 if reverse else -1].copy()
    pairs = zip(parts, [*sizes[1:], 0], strict=True)
    return np.concatenate([part[later:] for part, later in pairs][::-1])


def by_kind(rows: Array, count: int) -> Array:
    """(n, count * H) as (count, n, H): a view."""
    return rows.reshape(len(rows), count, rows.shape[1] // max(count, 1)).swapaxes(0, 1)


def sigmoid(x: Array) -> None:
    """In place."""
    np.negative(x, x)
    np.exp(x, x)
    np.add(x, 1, x)
    np.reciprocal(x, x)


def gradient_of(grad: Array | None, like: Array) -> Array:
    """A copy that may be written to; zeros for none."""
    return np.zeros_like(like, order="C") if grad is None else grad.copy(order="C")
