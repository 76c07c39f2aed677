"""Tangents of attention and of its gradients; the names are the same as in the formulas."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.graph.forward_rule import plus
from plugrad.ops.formulas.attention import row_sum, turned, weights_again
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _scores_tangent(
    query_t: Any, key_t: Any, mask_t: Any, query: Tensor, key: Tensor, scale: float
) -> Any:
    total = mask_t
    if query_t is not None:
        total = plus(total, F.matmul(query_t, turned(key)) * scale)
    if key_t is not None:
        total = plus(total, F.matmul(query, turned(key_t)) * scale)
    return total


def attention_tangents(
    query_t: Any,
    key_t: Any,
    value_t: Any,
    mask_t: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any]:
    weights: Any = weights_again(query, key, attn_mask, logsumexp, is_causal, scale)
    scores_t = _scores_tangent(query_t, key_t, mask_t, query, key, scale)
    out_t = None if value_t is None else F.matmul(weights, value_t)
    sums_t = None
    if scores_t is not None:
        mean = row_sum(weights * scores_t)
        out_t = plus(out_t, F.matmul(weights * (scores_t - mean), value))
        sums_t = mean.squeeze(-1)
    return out_t, sums_t


def attention_backward_tangents(
    grad_t: Any,
    query_t: Any,
    key_t: Any,
    value_t: Any,
    mask_t: Any,
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
    wanted: tuple[bool, ...],
) -> tuple[Any, ...]:
    weights: Any = weights_again(query, key, attn_mask, logsumexp, is_causal, scale)
    to_weights: Any = F.matmul(grad_out, turned(value))
    centered = to_weights - row_sum(weights * to_weights)
    to_scores = weights * centered
    scores_t = _scores_tangent(query_t, key_t, mask_t, query, key, scale)
    weights_t = None if scores_t is None else weights * (scores_t - row_sum(weights * scores_t))
    to_weights_t = None if grad_t is None else F.matmul(grad_t, turned(value))
    if value_t is not None:
        to_weights_t = plus(to_weights_t, F.matmul(grad_out, turned(value_t)))
    to_scores_t = None
    if weights_t is not None:
        to_scores_t = weights_t * centered - weights * row_sum(weights_t * to_weights)
    if to_weights_t is not None:
        onward = weights * (to_weights_t - row_sum(weights * to_weights_t))
        to_scores_t = plus(to_scores_t, onward)
    found: list[Any] = [None] * 4
    if wanted[0]:
        found[0] = _product(to_scores_t, key, to_scores, key_t, scale, query)
    if wanted[1]:
        back_t = None if to_scores_t is None else turned(to_scores_t)
        found[1] = _product(back_t, query, turned(to_scores), query_t, scale, key)
    if wanted[2]:
        back_t = None if weights_t is None else turned(weights_t)
        found[2] = _product(back_t, grad_out, turned(weights), grad_t, 1.0, value)
    if wanted[3] and to_scores_t is not None:
        found[3] = C.call_sum_to_size(to_scores_t, sizes_of(attn_mask))
    return tuple(found)


def _product(a_t: Any, b: Tensor, a: Tensor, b_t: Any, scale: float, like: Tensor) -> Any:
    """The tangent of scale * a @ b, in the shape of the input that it is the gradient of."""
    total = None if a_t is None else F.matmul(a_t, b)
    if b_t is not None:
        total = plus(total, F.matmul(a, b_t))
    return None if total is None else C.call_sum_to_size(total * scale, sizes_of(like))
