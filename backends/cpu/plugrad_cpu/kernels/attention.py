"""Kernels of attention: blocks of rows of the weights that stay in the cache.

A block has all columns of its rows, so that a row needs no running maximum, and its memory grows
with the length of the sequence, not with the square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from plugrad_cpu.kernels.linalg import widen

Array = Any

# Weights that are in memory at a time.
_BLOCK: Final = 1 << 17
# Of rows in a block: products of fewer are slow.
_LEAST_ROWS: Final = 64


def _blocks(
    heads: int, rows: int, columns: int, is_causal: bool
) -> Iterator[tuple[slice, slice, int]]:
    """Heads and rows of each block, and how many columns its rows need: several whole heads, or a
    part of the rows."""
    step = max(1, min(rows, _BLOCK // max(columns, 1)))
    if is_causal:
        # Smaller ones leave out more of what no row takes part in.
        step = max(1, min(step, max(rows // 8, _LEAST_ROWS)))
    together = max(1, _BLOCK // max(step * columns, 1))
    for head in range(0, heads, together):
        for first in range(0, rows, step):
            behind = min(first + step, rows)
            used = min(behind, columns) if is_causal else columns
            yield slice(head, min(head + together, heads)), slice(first, behind), used


class _Inputs:
    """Query, key and value with their leading dimensions broadcast and made one: (heads, *, *)."""

    def __init__(
        self, query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float
    ) -> None:
        parts = [a for a in (query, key, value, mask) if a is not None]
        self.leading = np.broadcast_shapes(*[a.shape[:-2] for a in parts])
        self.heads = math.prod(self.leading)
        self.rows, self.columns = query.shape[-2], key.shape[-2]
        self.causal = causal
        self.scale = widen(query).dtype.type(scale)
        self.query = self.flat(widen(query) * self.scale)
        self.key, self.value = self.flat(widen(key)), self.flat(widen(value))
        self.buffers = [np.empty(0, self.query.dtype)] * 2
        self.mask = None
        if mask is not None:
            if mask.dtype == np.bool_:
                mask = np.where(mask, self.query.dtype.type(0), self.query.dtype.type(-np.inf))
            shape = (*self.leading, self.rows, self.columns)
            # A view: whoever has one mask for all heads has it once in memory.
            self.mask = np.broadcast_to(widen(mask), shape)

    def flat(self, a: Array) -> Array:
        shape = (*self.leading, *a.shape[-2:])
        return np.broadcast_to(a, shape).reshape(self.heads, *a.shape[-2:])

    def mask_of(self, heads: slice, rows: slice, columns: int) -> Any:
        """The mask of a block."""
        mask: Any = self.mask
        if not self.leading:
            return mask[None, rows, :columns]
        count = math.prod(mask.shape[:-2])
        chosen = np.arange(count)[heads]
        places = np.unravel_index(chosen, self.leading)
        return mask[(*places, rows, slice(0, columns))]

    def products(self, rows: Array, columns: Array, buffer: int) -> Array:
        """Of all rows with all columns, in memory that one block after the other uses."""
        shape = (rows.shape[0], rows.shape[1], columns.shape[1])
        size = math.prod(shape)
        memory = self.buffers[buffer]
        if memory.size < size:
            memory = self.buffers[buffer] = np.empty(size, rows.dtype)
        return np.matmul(rows, columns.swapaxes(-1, -2), memory[:size].reshape(shape))

    def scores(self, heads: slice, rows: slice, columns: int) -> Array:
        scores = self.products(self.query[heads, rows], self.key[heads, :columns], 0)
        if self.mask is not None:
            scores += self.mask_of(heads, rows, columns)
        first = rows.start + 1
        if self.causal and columns > first:
            later = np.arange(first, columns) >= np.arange(first, rows.stop + 1)[:, None]
            np.copyto(scores[..., first:], -np.inf, where=later)
        return scores

    def blocks(self) -> Iterator[tuple[slice, slice, int]]:
        return _blocks(self.heads, self.rows, self.columns, self.causal)


def attention(
    query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Any, Any]:
    """The result, and the logarithm of each row's sum of exponentials; inf for an empty sum."""
    given = _Inputs(query, key, value, mask, causal, scale)
    dtype = given.query.dtype
    out = np.zeros((given.heads, given.rows, value.shape[-1]), dtype)
    sums = np.full((given.heads, given.rows, 1), np.inf, dtype)
    if given.columns:
        for heads, rows, columns in given.blocks():
            weights = given.scores(heads, rows, columns)
            most = weights.max(-1, keepdims=True)
            if mask is not None:
                most[most == -np.inf] = 0
            weights -= most
            np.exp(weights, weights)
            # A product with ones runs in BLAS.
            total = np.matmul(weights, np.ones((columns, 1), dtype))
            found = np.matmul(weights, given.value[heads, :columns])
            if mask is not None:
                dead = total == 0
                total[dead] = 1
                most[dead] = np.inf
            np.divide(found, total, out[heads, rows])
            np.log(total, total)
            np.add(total, most, sums[heads, rows])
    shape = (*given.leading, given.rows)
    shaped = out.reshape(*shape, value.shape[-1])
    return shaped.astype(query.dtype, copy=False), sums.reshape(shape)


def attention_backward(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    out: Array,
    logsumexp: Array,
    causal: bool,
    scale: float,
    wanted: tuple[bool, bool, bool, bool],
) -> tuple[Any, ...]:
    given = _Inputs(query, key, value, mask, causal, scale)
    grads = given.flat(widen(grad))
    shift = np.broadcast_to(logsumexp, (*given.leading, given.rows)).reshape(given.heads, -1, 1)
    row_sums = np.vecdot(grads, given.flat(widen(out)))[..., None]
    dtype = given.query.dtype
    to_query = np.zeros(given.query.shape, dtype) if wanted[0] else None
    to_key = np.zeros(given.key.shape, dtype) if wanted[1] else None
    to_value = np.zeros(given.value.shape, dtype) if wanted[2] else None
    to_mask = None
    if wanted[3]:
        to_mask = np.zeros((given.heads, given.rows, given.columns), dtype)
    for heads, rows, columns in given.blocks():
        weights = given.scores(heads, rows, columns)
        weights -= shift[heads, rows]
        np.exp(weights, weights)
        grad_rows = grads[heads, rows]
        if to_value is not None:
            to_value[heads, :columns] += np.matmul(weights.swapaxes(-1, -2), grad_rows)
        if not (wanted[0] or wanted[1] or wanted[3]):
            continue
        to_scores = given.products(grad_rows, given.value[heads, :columns], 1)
        to_scores -= row_sums[heads, rows]
        to_scores *= weights
        if to_query is not None:
            np.matmul(to_scores, given.key[heads, :columns], to_query[heads, rows])
        if to_key is not None:
            queries = given.query[heads, rows]
            to_key[heads, :columns] += np.matmul(to_scores.swapaxes(-1, -2), queries)
        if to_mask is not None:
            to_mask[heads, rows, :columns] = to_scores
    if to_query is not None:
        to_query *= given.scale
    found = (to_query, to_key, to_value, to_mask)
    return tuple(
        None if part is None or like is None else _like(part, given.leading, like)
        for part, like in zip(found, (query, key, value, mask), strict=True)
    )


def _like(part: Array, leading: tuple[int, ...], like: Array) -> Any:
    """A gradient summed to the shape of the input that was broadcast, in its dtype."""
    full = part.reshape(*leading, *part.shape[-2:])
    if full.shape != like.shape:
        missing = full.ndim - like.ndim
        sizes = (1,) * missing + like.shape
        over = tuple(d for d, size in enumerate(sizes) if size != full.shape[d])
        full = full.sum(over, keepdims=True).reshape(like.shape)
    return full.astype(like.dtype, copy=False)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_scaled_dot_product_attention": attention,
    "_scaled_dot_product_attention_backward": attention_backward,
}
