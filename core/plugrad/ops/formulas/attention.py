"""Gradients of attention, and of its gradients.

With the scores S = scale * q @ k.T + mask, the weights P = softmax(S) and the result P @ v, along a
cotangent g of the result: P gets dP = g @ v.T, and S gets dS = P * (dP - rowsum(P * dP)).
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.ops.composite.attention import masked_scores

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def attention_gradients(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
    mask: tuple[bool, ...],
) -> Any:
    wanted = (mask[0], mask[1], mask[2], len(mask) > 3 and mask[3])
    return C.call__scaled_dot_product_attention_backward(
        grad, query, key, value, attn_mask, out, logsumexp, is_causal, scale, wanted
    )


def weights_again(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
) -> Tensor:
    """The weights, (*, L, S), as differentiable functions of their inputs."""
    scores = masked_scores(query * scale, key, attn_mask, is_causal, 0)
    dead = (logsumexp == math.inf).unsqueeze(-1)
    weights = F.softmax(F.masked_fill(scores, dead, 0.0), -1)
    return F.masked_fill(weights, dead, 0.0)


def row_sum(x: Tensor) -> Any:
    return x.sum(dim=(-1,), keepdim=True)


def turned(x: Tensor) -> Any:
    return x.transpose(-2, -1)


def _added(a: Any, b: Any) -> Any:
    if a is None:
        return b
    return a if b is None else a + b


def attention_double_backward(
    grads: Any,
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
    mask: tuple[bool, ...],
) -> tuple[Any, ...]:
    """With `c` and `h` what dS and P get, dS is as far from dP and P as S is from P."""
    for_query, for_key, for_value, for_mask = grads
    weights: Any = weights_again(query, key, attn_mask, logsumexp, is_causal, scale)
    to_weights: Any = F.matmul(grad_out, turned(value))
    centered = to_weights - row_sum(weights * to_weights)
    to_scores = weights * centered
    c: Any = for_mask
    if for_query is not None:
        c = _added(c, F.matmul(for_query, turned(key)) * scale)
    if for_key is not None:
        c = _added(c, F.matmul(query, turned(for_key)) * scale)
    h: Any = None if for_value is None else F.matmul(grad_out, turned(for_value))
    found: list[Any] = [None] * 5
    if for_value is not None and mask[0]:
        found[0] = F.matmul(weights, for_value)
    if c is not None:
        mean = row_sum(weights * c)
        onward = weights * (c - mean)
        if mask[0]:
            found[0] = _added(found[0], F.matmul(onward, value))
        if mask[3]:
            found[3] = F.matmul(turned(onward), grad_out)
        h = _added(h, c * centered - mean * to_weights)
    if h is None:
        return tuple(found)
    through = weights * (h - row_sum(weights * h))
    if mask[1]:
        direct = None if for_key is None else F.matmul(to_scores, for_key)
        found[1] = _added(F.matmul(through, key), direct) * scale
    if mask[2]:
        direct = None if for_query is None else F.matmul(turned(to_scores), for_query)
        found[2] = _added(F.matmul(turned(through), query), direct) * scale
    if len(mask) > 4 and mask[4]:
        found[4] = through
    return tuple(found)
