"""Kernels of attention: blocks of rows of the weights that stay in the cache.

A block has all columns of its rows, so a row needs no running maximum, and memory grows with the
length of the sequence, not with its square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import loops_for
from plugrad_cpu.kernels.linalg import widen

Array = Any

# The number of weights that are in memory at a time. Compiled loops pass over them less often, so
# the speed of products matters more, and larger blocks are better for these.
_BLOCK: Final = 1 << 17
_COMPILED_BLOCK: Final = 1 << 18
# Of rows in a block: products of fewer are slow.
_LEAST_ROWS: Final = 64
# Elements that a line of the cache holds.
_LINE: Final = 16


def _blocks(
    heads: int, rows: int, columns: int, is_causal: bool, size: int
) -> Iterator[tuple[slice, slice, int]]:
    """Heads and rows of each block of `size` weights, and how many columns its rows need: several
    whole heads, or a part of the rows."""
    step = max(1, min(rows, size // max(columns, 1)))
    if is_causal:
        # Smaller ones leave out more of the masked columns.
        step = max(1, min(step, max(rows // 8, _LEAST_ROWS)))
    together = max(1, size // max(step * columns, 1))
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
        self.query, self.key = self.flat(widen(query)), self.flat(widen(key))
        self.value = self.flat(widen(value))
        self.dtype = self.query.dtype
        self.block = _BLOCK
        self.buffers: dict[str, Array] = {}
        self.masks, self.mask_of_head = None, np.empty(0, np.intp)
        if mask is not None:
            # What was expanded is one row, or one matrix, again.
            once = [slice(None if stride else 1) for stride in mask.strides[:-1]]
            mask = mask[tuple(once)]
            # Each matrix of the mask once, and the number of each head's matrix.
            count = math.prod(mask.shape[:-2])
            self.masks = self.prepare(widen(mask).reshape(count, *mask.shape[-2:]))
            numbers = np.arange(count).reshape(mask.shape[:-2])
            self.mask_of_head = np.broadcast_to(numbers, self.leading).reshape(-1)

    def flat(self, a: Array) -> Array:
        shape = (*self.leading, *a.shape[-2:])
        return np.broadcast_to(a, shape).reshape(self.heads, *a.shape[-2:])

    def prepare(self, masks: Array) -> Array:
        """Masks that are added, (masks, rows, columns)."""
        if masks.dtype == np.bool_:
            masks = np.where(masks, self.dtype.type(0), self.dtype.type(-np.inf))
        return np.broadcast_to(masks, (len(masks), self.rows, self.columns))

    def blocks(self) -> Iterator[tuple[slice, slice, int]]:
        return _blocks(self.heads, self.rows, self.columns, self.causal, self.block)

    def memory(self, name: str, shape: tuple[int, ...]) -> Array:
        """What one block after the other uses: new memory costs as much as a pass over it."""
        size = math.prod(shape)
        if name not in self.buffers or self.buffers[name].size < size:
            self.buffers[name] = np.empty(size, self.dtype)
        return self.buffers[name][:size].reshape(shape)

    def scaled(self, heads: slice, rows: slice) -> Array:
        """The queries of a block times the scale."""
        part = self.query[heads, rows]
        return np.multiply(part, self.scale, self.memory("query", part.shape))

    def products(self, name: str, rows: Array, others: Array, heads: slice, columns: int) -> Array:
        """Products of rows of a block with rows of the key or the value, (heads, rows, columns)."""
        made = self.memory(name, (*rows.shape[:2], columns))
        return np.matmul(rows, others[heads, :columns].swapaxes(-1, -2), made)

    def scores(self, heads: slice, rows: slice, columns: int) -> Array:
        """The scores of a block, -inf for masked pairs."""
        scaled = self.scaled(heads, rows)
        scores = self.products("scores", scaled, self.key, heads, columns)
        if self.masks is not None:
            number = 0 if len(self.masks) == 1 else self.mask_of_head[heads]
            scores += self.masks[number, rows, :columns]
        first = rows.start + 1
        if self.causal and columns > first:
            later = np.arange(first, columns) >= np.arange(first, rows.stop + 1)[:, None]
            np.copyto(scores[..., first:], -np.inf, where=later)
        return scores

    def weights(self, heads: slice, rows: slice, columns: int) -> tuple[Array, Array, Array]:
        """The weights of a block, not divided by their sums yet; the sums; and the numbers
        subtracted from the scores, inf for fully masked rows."""
        weights = self.scores(heads, rows, columns)
        most = weights.max(-1, keepdims=True)
        if self.masks is not None:
            most[most == -np.inf] = 0
        weights -= most
        np.exp(weights, weights)
        # A product with ones runs in BLAS.
        total = np.matmul(weights, np.ones((columns, 1), self.dtype))
        if self.masks is not None:
            dead = total == 0
            total[dead] = 1
            most[dead] = np.inf
        return weights, total, most

    def weights_again(self, heads: slice, rows: slice, columns: int, shift: Array) -> Array:
        """The weights of a block, divided by their sums; `shift` has the sums' logarithms."""
        weights = self.scores(heads, rows, columns)
        weights -= shift
        return np.exp(weights, weights)

    def to_scores(self, grad: Array, heads: slice, columns: int, row_sums: Array) -> Array:
        """The gradients of the scores of the block with the latest weights."""
        found = self.products("gradients", grad, self.value, heads, columns)
        found -= row_sums
        found *= self.memory("scores", found.shape)
        return found


def _apart(columns: int) -> int:
    """How far apart rows are: those that are a power of two apart share few places of the cache."""
    return (-(-columns // _LINE) | 1) * _LINE


class _Compiled(_Inputs):
    """The same by compiled loops over the rows of a block, which are in memory that is wider."""

    def __init__(self, loops: Any, *given: Any) -> None:
        super().__init__(*given)
        self.loops = loops
        self.block = _COMPILED_BLOCK
        # The heads for which each of the two arrays is transposed.
        self.turned_heads: dict[str, slice] = {}

    def prepare(self, masks: Array) -> Array:
        """Masks of numbers or booleans, (masks, rows or 1, columns)."""
        masks = np.broadcast_to(masks, (*masks.shape[:2], self.columns))
        return np.ascontiguousarray(masks)

    def turned(self, name: str, others: Array, heads: slice) -> Array:
        """Rows of the key or the value as columns, which BLAS multiplies with faster."""
        part = others[heads]
        found = self.memory(name, (len(part), part.shape[2], _apart(self.columns)))
        if self.turned_heads.get(name) != heads:
            self.loops.turn(part, found)
            self.turned_heads[name] = heads
        return found

    def wide_products(
        self, name: str, rows: Array, others: Array, heads: slice, columns: int
    ) -> Array:
        found = self.memory(name, (*rows.shape[:2], _apart(columns)))
        if self.rows < _LEAST_ROWS:
            right = others[heads, :columns].swapaxes(-1, -2)
        else:
            right = self.turned(name + " turned", others, heads)[..., :columns]
        np.matmul(rows, right, found[..., :columns])
        return found

    def wide_scores(self, heads: slice, rows: slice, columns: int) -> tuple[Array, int]:
        """The scores of a block, and the last column that its first row uses."""
        scaled = self.scaled(heads, rows)
        scores = self.wide_products("scores", scaled, self.key, heads, columns)
        if self.masks is not None:
            apply = self.loops.hide if self.masks.dtype == np.bool_ else self.loops.add_mask
            apply(scores, columns, self.masks, self.mask_of_head[heads], rows.start)
        return scores, rows.start if self.causal else columns

    def weights(self, heads: slice, rows: slice, columns: int) -> tuple[Array, Array, Array]:
        scores, last = self.wide_scores(heads, rows, columns)
        total, most = np.empty((2, *scores.shape[:2], 1), self.dtype)
        self.loops.weigh(scores, columns, last, self.masks is not None, total, most)
        return scores[..., :columns], total, most

    def weights_again(self, heads: slice, rows: slice, columns: int, shift: Array) -> Array:
        scores, last = self.wide_scores(heads, rows, columns)
        self.loops.weigh_again(scores, columns, last, shift)
        return scores[..., :columns]

    def to_scores(self, grad: Array, heads: slice, columns: int, row_sums: Array) -> Array:
        found = self.wide_products("gradients", grad, self.value, heads, columns)
        self.loops.center(found, columns, self.memory("scores", found.shape), row_sums)
        return found[..., :columns]


def _inputs(
    query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float
) -> _Inputs:
    given = (query, key, value, mask, causal, scale)
    count = query.size // max(query.shape[-1], 1) * key.shape[-2]
    compiled = loops_for("attention", count) if widen(query).dtype == np.float32 else None
    return _Compiled(compiled, *given) if compiled else _Inputs(*given)


def attention(
    query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Any, Any]:
    """The result, and the logarithm of each row's sum of exponentials; inf for an empty sum."""
    given = _inputs(query, key, value, mask, causal, scale)
    out = np.zeros((given.heads, given.rows, value.shape[-1]), given.dtype)
    sums = np.full((given.heads, given.rows, 1), np.inf, given.dtype)
    if given.columns:
        for heads, rows, columns in given.blocks():
            weights, total, most = given.weights(heads, rows, columns)
            found = np.matmul(weights, given.value[heads, :columns], out[heads, rows])
            found /= total
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
    given = _inputs(query, key, value, mask, causal, scale)
    grads = given.flat(widen(grad))
    shift = np.broadcast_to(logsumexp, (*given.leading, given.rows))
    shift = shift.reshape(given.heads, given.rows, 1)
    row_sums = np.vecdot(grads, given.flat(widen(out)))[..., None]
    dtype = given.dtype
    to_query = np.zeros(given.query.shape, dtype) if wanted[0] else None
    to_key = np.zeros(given.key.shape, dtype) if wanted[1] else None
    to_value = np.zeros(given.value.shape, dtype) if wanted[2] else None
    to_mask = None
    if wanted[3]:
        to_mask = np.zeros((given.heads, given.rows, given.columns), dtype)
    for heads, rows, columns in given.blocks():
        weights = given.weights_again(heads, rows, columns, shift[heads, rows])
        grad_rows = grads[heads, rows]
        if to_value is not None:
            to_value[heads, :columns] += np.matmul(weights.swapaxes(-1, -2), grad_rows)
        if not (wanted[0] or wanted[1] or wanted[3]):
            continue
        to_scores = given.to_scores(grad_rows, heads, columns, row_sums[heads, rows])
        if to_query is not None:
            np.matmul(to_scores, given.key[heads, :columns], to_query[heads, rows])
        if to_key is not None:
            queries = given.query[heads, rows]
            to_key[heads, :columns] += np.matmul(to_scores.swapaxes(-1, -2), queries)
        if to_mask is not None:
            to_mask[heads, rows, :columns] = to_scores
    for part in (to_query, to_key):
        if part is not None:
            part *= given.scale
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
