"""Attention in memory linear in the sequence: blocks of keys, with a running maximum of each row.

Source: Dao, Fu, Ermon, Rudra and Ré, FlashAttention, 2022, algorithms 1 and 4.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, bool_, float32, float64
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.selection.positions import mask_tensor
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.operands import device_mismatch

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]

# Columns of the weights that are in memory at a time.
_BLOCK: Final = 512


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    _check(query, key, value, attn_mask)
    if attn_mask is not None and attn_mask.dtype is float32 and query.dtype is float64:
        attn_mask = attn_mask.to(query.dtype)
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    width = sizes_of(query)[-1]
    factor = 1 / math.sqrt(max(width, 1)) if scale is None else scale
    if enable_gqa:
        heads = sizes_of(query)[-3] if query.ndim > 2 else 1
        key, value = _repeated(key, heads), _repeated(value, heads)
    if dropout_p == 0.0:
        return C.call__scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal, factor
        )[0]
    # Narrow floats are rounded once, at the end.
    weights = attention_weights(widened(query), widened(key), attn_mask, is_causal, factor)
    result = F.matmul(F.dropout(weights, dropout_p, True), widened(value))
    return in_dtype_of(result, query)


def _check(query: TensorBase, key: TensorBase, value: TensorBase, mask: TensorBase | None) -> None:
    ranks = (query.ndim, key.ndim, value.ndim)
    if min(ranks) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {ranks[0]} key.dim: {ranks[1]} and value.dim: {ranks[2]} instead."
        )
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{_cpp_name(query)} key.dtype: {_cpp_name(key)} and value.dtype: {_cpp_name(value)} "
            "instead."
        )
    for other in (key, value) if mask is None else (key, value, mask):
        if other.device is not query.device:
            raise device_mismatch(query.device, other.device)
    category = query.dtype.category
    if category < FLOATING:
        raise RuntimeError(
            "scaled_dot_product_attention: expected query, key and value of a floating point "
            f"dtype, but got {query.dtype.scalar_name}"
        )
    if category > FLOATING:
        raise not_implemented("softmax_lastdim_kernel_impl", query.dtype)
    if mask is not None:
        if mask.dtype not in (bool_, float32, query.dtype):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                f"attn_mask.dtype: {_cpp_name(mask)} and  query.dtype: {_cpp_name(query)} instead."
            )
        if mask.ndim < 2:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{max(mask.ndim, 1)}, "
                f"{max(mask.ndim, 1) - 1}], but got -2)"
            )
    _check_sizes(sizes_of(query), sizes_of(key), sizes_of(value))


def _cpp_name(tensor: TensorBase) -> str:
    return CPP_NAMES[tensor.dtype.name]


def _check_sizes(query: Ints, key: Ints, value: Ints) -> None:
    if query[-1] != key[-1] or key[-2] != value[-2]:
        raise RuntimeError(
            "scaled_dot_product_attention: expected query (*, L, E), key (*, S, E) and value "
            f"(*, S, Ev), but got {list(query)}, {list(key)} and {list(value)}"
        )


def _repeated(tensor: Tensor, heads: int) -> Tensor:
    """Each head of key or value as often as there are heads of the query for it."""
    sizes = sizes_of(tensor)
    own = sizes[-3] if tensor.ndim > 2 else 1
    if own == 0 or heads % own != 0:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, but got "
            f"{own} and {heads}"
        )
    if own == heads or tensor.ndim < 3:
        return tensor
    grouped = tensor.unsqueeze(-3).expand((*sizes[:-2], heads // own, *sizes[-2:]))
    return grouped.reshape((*sizes[:-3], heads, *sizes[-2:]))


def attention_weights(
    query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    """All weights, (*, L, S), by ordinary operators; a fully masked row is zero."""
    scores = masked_scores(query * scale, key, attn_mask, is_causal, 0)
    if attn_mask is None:
        return F.softmax(scores, -1)
    dead = (scores.detach() == -math.inf).all(dim=-1, keepdim=True)
    weights = F.softmax(F.masked_fill(scores, dead, 0.0), -1)
    return F.masked_fill(weights, dead, 0.0)


def masked_scores(
    query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool, start: int
) -> Tensor:
    """Products of rows with a block of columns that begins at `start`, -inf for masked pairs. The
    mask covers only the block."""
    scores = F.matmul(query, key.transpose(-2, -1))
    rows, columns = sizes_of(query)[-2], sizes_of(key)[-2]
    if attn_mask is not None:
        if attn_mask.dtype is bool_:
            scores = F.masked_fill(scores, F.logical_not(attn_mask), -math.inf)
        else:
            scores = scores + attn_mask
    if is_causal and start + columns - 1 > 0:
        later = np.arange(start, start + columns) > np.arange(rows)[:, None]
        if later.any():
            scores = F.masked_fill(scores, mask_tensor(later, scores), -math.inf)
    return scores


def mask_block(attn_mask: Tensor | None, start: int, size: int) -> Any:
    """The columns of a mask that belong to a block; a single column applies to all."""
    if attn_mask is None:
        return None
    wide = attn_mask if attn_mask.dtype is bool_ else widened(attn_mask)
    return wide if sizes_of(wide)[-1] == 1 else wide.narrow(-1, start, size)


def _blocks(rows: int, columns: int, is_causal: bool) -> list[tuple[int, int]]:
    """Starts and sizes of blocks of columns, without blocks that are masked for every row."""
    used = min(columns, rows) if is_causal else columns
    return [(start, min(_BLOCK, used - start)) for start in range(0, used, _BLOCK)]


def _leading(*tensors: TensorBase | None) -> Ints:
    """What the dimensions before the last two broadcast to."""
    shape: Ints = ()
    for tensor in tensors:
        if tensor is not None:
            shape = broadcast_shapes(shape, sizes_of(tensor)[:-2])
    return shape


def attention_by_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor]:
    wide: Any = widened(query) * scale
    keys, values = widened(key), widened(value)
    leading = _leading(query, key, value, attn_mask)
    rows, columns = sizes_of(query)[-2], sizes_of(key)[-2]
    shape = (*leading, rows, 1)
    most: Any = F.full(shape, -math.inf, dtype=wide.dtype, device=wide.device)
    total: Any = F.zeros(shape, dtype=wide.dtype, device=wide.device)
    sums: Any = F.zeros((*leading, rows, sizes_of(value)[-1]), dtype=wide.dtype, device=wide.device)
    for start, size in _blocks(rows, columns, is_causal):
        scores = masked_scores(
            wide,
            keys.narrow(-2, start, size),
            mask_block(attn_mask, start, size),
            is_causal,
            start,
        )
        found = F.maximum(most, scores.amax((-1,), True))
        # Where everything so far is masked, the maximum is -inf, which must not be subtracted.
        shift = F.masked_fill(found, found == -math.inf, 0.0)
        weights: Any = F.exp(scores - shift)
        keep = F.exp(most - shift)
        total = total * keep + weights.sum(dim=(-1,), keepdim=True)
        sums = sums * keep + F.matmul(weights, values.narrow(-2, start, size))
        most = found
    dead = total == 0
    out = F.masked_fill(sums / F.masked_fill(total, dead, 1.0), dead, 0.0)
    logsumexp = F.masked_fill(most + F.log(total), dead, math.inf)
    return in_dtype_of(out, query), logsumexp.squeeze(-1)


def attention_backward_by_blocks(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
    output_mask: tuple[bool, bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    grad: Any = widened(grad_out)
    wide: Any = widened(query) * scale
    keys, values = widened(key), widened(value)
    rows, columns = sizes_of(query)[-2], sizes_of(key)[-2]
    row_sums = (grad * widened(out)).sum(dim=(-1,), keepdim=True)
    shift = logsumexp.unsqueeze(-1)
    to_query: Any = None
    parts: list[list[Tensor]] = [[], [], []]
    blocks = _blocks(rows, columns, is_causal)
    for start, size in blocks:
        block = keys.narrow(-2, start, size)
        mask = mask_block(attn_mask, start, size)
        weights: Any = F.exp(masked_scores(wide, block, mask, is_causal, start) - shift)
        to_weights = F.matmul(grad, values.narrow(-2, start, size).transpose(-2, -1))
        to_scores = weights * (to_weights - row_sums)
        if output_mask[0]:
            part: Any = F.matmul(to_scores, block)
            to_query = part if to_query is None else to_query + part
        if output_mask[1]:
            parts[0].append(F.matmul(to_scores.transpose(-2, -1), wide))
        if output_mask[2]:
            parts[1].append(F.matmul(weights.transpose(-2, -1), grad))
        if output_mask[3]:
            parts[2].append(to_scores)
    leading = _leading(query, key, value, attn_mask)
    rest = columns - sum([size for _, size in blocks])
    to_key = _joined(parts[0], leading, rest, sizes_of(key)[-1], -2, key, output_mask[1])
    to_value = _joined(parts[1], leading, rest, sizes_of(value)[-1], -2, value, output_mask[2])
    to_mask: Tensor | None = None
    if output_mask[3] and attn_mask is not None:
        to_mask = _joined(parts[2], (*leading, rows), rest, 0, -1, attn_mask, True)
    if output_mask[0]:
        if to_query is None:
            to_query = F.zeros(sizes_of(query), dtype=query.dtype, device=query.device)
        to_query = in_dtype_of(C.call_sum_to_size(to_query * scale, sizes_of(query)), query)
    return to_query, to_key, to_value, to_mask


def _joined(
    parts: list[Tensor],
    leading: Ints,
    rest: int,
    width: int,
    dim: int,
    like: Tensor,
    wanted: bool,
) -> Tensor | None:
    """The gradients of all blocks, and zeros behind them, in the shape of the input."""
    if not wanted:
        return None
    if rest or not parts:
        dtype = widened(like).dtype
        shape = (*leading, rest, width) if dim == -2 else (*leading, rest)
        parts = [*parts, F.zeros(shape, dtype=dtype, device=like.device)]
    joined = F.cat(parts, dim) if len(parts) > 1 else parts[0]
    return in_dtype_of(C.call_sum_to_size(joined, sizes_of(like)), like)
