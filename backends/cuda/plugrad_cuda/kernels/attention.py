"""Kernels of attention: blocks of rows of the weights, which are never in memory all together.

A block has all columns of its rows, so a row needs no running maximum, and memory grows with the
length of the sequence, not with its square. 16-bit floats are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from plugrad_cuda.kernels.family import Family, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace

Block = tuple[slice, slice, int]

# Weights that are in memory at a time: enough of them to keep a large GPU busy.
_BLOCK: Final = 1 << 24
# Of rows in a block, where only some columns are needed: products of fewer are slow.
_LEAST_ROWS: Final = 64


def _added(xp: Any, scores: Array, mask: Array) -> Any:
    return scores + mask


def _taking_part(xp: Any, scores: Array, mask: Array) -> Any:
    return xp.where(mask, scores, -math.inf)


def _until_the_row(xp: Any, scores: Array, rows: Array, columns: Array) -> Any:
    return xp.where(columns > rows, -math.inf, scores)


def _finite_or_zero(xp: Any, most: Array) -> Any:
    return xp.where(most == -math.inf, 0.0, most)


def _exponentials(xp: Any, scores: Array, shift: Array) -> Any:
    return xp.exp(scores - shift)


def _divided(xp: Any, found: Array, total: Array) -> Any:
    return found / xp.where(total == 0, 1.0, total)


def _logarithm(xp: Any, total: Array, most: Array) -> Any:
    return xp.where(total == 0, math.inf, xp.log(total) + most)


def _score_gradient(xp: Any, weights: Array, to_weights: Array, row_sums: Array) -> Any:
    return weights * (to_weights - row_sums)


def blocks(heads: int, rows: int, columns: int, is_causal: bool) -> Iterator[Block]:
    """Heads and rows of each block, and how many columns its rows need: several whole heads, or a
    part of the rows of one."""
    step = max(1, min(rows, _BLOCK // max(columns, 1)))
    if is_causal:
        # Smaller ones leave out more of the masked columns.
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
        self,
        xp: Any,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        is_causal: bool,
        scale: float,
    ) -> None:
        parts = [a for a in (query, key, value, mask) if a is not None]
        self.xp = xp
        self.leading = np.broadcast_shapes(*[a.shape[:-2] for a in parts])
        self.heads = math.prod(self.leading)
        self.rows, self.columns = query.shape[-2], key.shape[-2]
        self.is_causal = is_causal
        self.query = self.flat(widen(query) * scale)
        self.key, self.value = self.flat(widen(key)), self.flat(widen(value))
        self.mask = self.one_for_all = None
        if mask is not None:
            mask = widen(mask)
            if math.prod(mask.shape[:-2]) == 1:
                last = mask.reshape(mask.shape[-2:])
                self.one_for_all = xp.broadcast_to(last, (self.rows, self.columns))
            else:
                self.mask = xp.broadcast_to(mask, (*self.leading, self.rows, self.columns))

    def flat(self, a: Array) -> Array:
        shape = (*self.leading, *a.shape[-2:])
        return self.xp.broadcast_to(a, shape).reshape(self.heads, *a.shape[-2:])

    def mask_of(self, heads: slice, rows: slice, columns: int) -> Any:
        """The mask of a block, None without one. Whoever shares one among some heads only has it
        once for each head in a block, not in all of memory."""
        if self.one_for_all is not None:
            return self.one_for_all[rows, :columns]
        if self.mask is None:
            return None
        places = [np.unravel_index(head, self.leading) for head in range(heads.start, heads.stop)]
        parts = [self.mask[(*map(int, place), rows, slice(columns))] for place in places]
        return self.xp.stack(parts)

    def blocks(self) -> Iterator[Block]:
        """None if there are no columns, so that everything is masked."""
        return blocks(self.heads if self.columns else 0, self.rows, self.columns, self.is_causal)


class _Total:
    """A gradient that blocks add to; if there is one block, it is that block's."""

    def __init__(self, xp: Any, like: Array, shape: tuple[int, ...]) -> None:
        self.xp = xp
        self.dtype = like.dtype
        self.shape = shape
        self.sum: Array | None = None

    def add(self, place: tuple[slice, ...], part: Array) -> None:
        if self.sum is None and part.shape == self.shape:
            self.sum = part
        else:
            self.result()[place] += part

    def result(self) -> Array:
        """The sum so far."""
        if self.sum is None:
            self.sum = self.xp.zeros(self.shape, self.dtype)
        return self.sum


class Attention(Family):
    """Without dropout; some launches for each block."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.added = self.fused(_added)
        self.taking_part = self.fused(_taking_part)
        self.until_the_row = self.fused(_until_the_row)
        self.finite_or_zero = self.fused(_finite_or_zero)
        self.exponentials = self.fused(_exponentials)
        self.divided = self.fused(_divided)
        self.logarithm = self.fused(_logarithm)
        self.score_gradient = self.fused(_score_gradient)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "_scaled_dot_product_attention": self.attention,
            "_scaled_dot_product_attention_backward": self.attention_backward,
        }

    def scores(self, given: _Inputs, block: Block) -> Array:
        heads, rows, columns = block
        keys = given.key[heads, :columns].swapaxes(-1, -2)
        scores = self.ns.matmul(given.query[heads, rows], keys)
        mask = given.mask_of(*block)
        if mask is not None:
            scores = (self.taking_part if mask.dtype.kind == "b" else self.added)(scores, mask)
        if given.is_causal and columns > rows.start + 1:
            numbers = self.xp.arange(rows.start, rows.stop)[:, None]
            scores = self.until_the_row(scores, numbers, self.xp.arange(columns))
        return scores

    def attention(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        is_causal: bool,
        scale: float,
    ) -> tuple[Any, Any]:
        """The result, and the logarithm of each row's sum of exponentials; inf for an empty sum."""
        xp = self.xp
        given = _Inputs(xp, query, key, value, mask, is_causal, scale)
        dtype = given.query.dtype
        out_shape = (given.heads, given.rows, value.shape[-1])
        out = sums = None
        for block in given.blocks():
            heads, rows, columns = block
            scores = self.scores(given, block)
            most = xp.amax(scores, axis=-1, keepdims=True)
            if mask is not None:
                most = self.finite_or_zero(most)
            weights = self.exponentials(scores, most)
            total = xp.sum(weights, axis=-1, keepdims=True)
            found = self.divided(self.ns.matmul(weights, given.value[heads, :columns]), total)
            logarithm = self.logarithm(total, most)
            if found.shape == out_shape:  # one block is all
                out, sums = found, logarithm
                break
            if out is None or sums is None:
                out = xp.empty(out_shape, dtype)
                sums = xp.empty((given.heads, given.rows, 1), dtype)
            out[heads, rows] = found
            sums[heads, rows] = logarithm
        if out is None or sums is None:  # everything is masked
            out = xp.zeros(out_shape, dtype)
            sums = xp.full((given.heads, given.rows, 1), math.inf, dtype)
        shape = (*given.leading, given.rows)
        shaped = out.reshape(*shape, value.shape[-1])
        return shaped.astype(query.dtype, copy=False), sums.reshape(shape)

    def attention_backward(
        self,
        grad: Array,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        out: Array,
        logsumexp: Array,
        is_causal: bool,
        scale: float,
        wanted: tuple[bool, bool, bool, bool],
    ) -> tuple[Any, ...]:
        xp = self.xp
        given = _Inputs(xp, query, key, value, mask, is_causal, scale)
        grads = given.flat(widen(grad))
        shift = xp.broadcast_to(logsumexp, (*given.leading, given.rows))
        shift = shift.reshape(given.heads, given.rows, 1)
        row_sums = xp.sum(grads * given.flat(widen(out)), axis=-1, keepdims=True)
        scores_shape = (given.heads, given.rows, given.columns)
        to_query, to_key, to_value, to_mask = [
            _Total(xp, like, shape) if one else None
            for like, shape, one in zip(
                (given.query, given.key, given.value, given.query),
                (given.query.shape, given.key.shape, given.value.shape, scores_shape),
                wanted,
                strict=True,
            )
        ]
        for block in given.blocks():
            heads, rows, columns = block
            weights = self.exponentials(self.scores(given, block), shift[heads, rows])
            part = grads[heads, rows]
            if to_value is not None:
                found = self.ns.matmul(weights.swapaxes(-1, -2), part)
                to_value.add((heads, slice(columns)), found)
            if not (wanted[0] or wanted[1] or wanted[3]):
                continue
            to_weights = self.ns.matmul(part, given.value[heads, :columns].swapaxes(-1, -2))
            to_scores = self.score_gradient(weights, to_weights, row_sums[heads, rows])
            if to_query is not None:
                found = self.ns.matmul(to_scores, given.key[heads, :columns])
                to_query.add((heads, rows), found * scale)
            if to_key is not None:
                turned = to_scores.swapaxes(-1, -2)
                found = self.ns.matmul(turned, given.query[heads, rows])
                to_key.add((heads, slice(columns)), found)
            if to_mask is not None:
                to_mask.add((heads, rows, slice(columns)), to_scores)
        results = (to_query, to_key, to_value, to_mask)
        return tuple(
            [
                None
                if part is None or like is None
                else self.like(part.result(), given.leading, like)
                for part, like in zip(results, (query, key, value, mask), strict=True)
            ]
        )

    def like(self, part: Array, leading: tuple[int, ...], like: Array) -> Any:
        """A gradient summed to the shape of the input that was broadcast, in its dtype."""
        full = part.reshape(*leading, *part.shape[-2:])
        if full.shape != like.shape:
            sizes = (1,) * (full.ndim - like.ndim) + like.shape
            over = tuple([dim for dim, size in enumerate(sizes) if size != full.shape[dim]])
            full = self.xp.sum(full, axis=over, keepdims=True).reshape(like.shape)
        return full.astype(like.dtype, copy=False)
