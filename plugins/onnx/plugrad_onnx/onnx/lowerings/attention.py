"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.errors import OnnxExporterError
from plugrad_onnx.onnx.lowerings.indexing import tril
from plugrad_onnx.onnx.registry import lowers
from plugrad_onnx.onnx.sizes import product


@lowers("scaled_dot_product_attention")
def attention(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        raise OnnxExporterError(
            f"drops weights at random with dropout_p={dropout_p}: call model.eval() before the "
            "export, or give dropout_p=0"
        )
    factor = 1 / math.sqrt(query.sizes[-1]) if scale is None else float(scale)
    four = query.ndim == key.ndim == value.ndim == 4
    if b.opset >= 23 and four and (attn_mask is None or not is_causal):
        return b.op(
            "Attention", query, key, value, attn_mask, is_causal=int(is_causal), scale=factor
        )
    if enable_gqa:
        key, value = (_repeated(b, each, query.sizes[-3]) for each in (key, value))
    turned = b.transpose(key, [*range(key.ndim - 2), key.ndim - 1, key.ndim - 2])
    scores = b.op("MatMul", b.op("Mul", query, b.number(factor, query.dtype)), turned)
    least = b.number(-math.inf, query.dtype)
    rows, columns = query.sizes[-2], key.sizes[-2]
    if is_causal:
        ones = b.expand(b.number(1, plugrad.int32), [rows, columns])
        allowed = b.cast(tril(b, ones), plugrad.bool)
        scores = b.op("Where", allowed, scores, least, dtype=query.dtype)
    if attn_mask is not None:
        if attn_mask.dtype == plugrad.bool:
            scores = b.op("Where", attn_mask, scores, least, dtype=query.dtype)
        else:
            scores = b.op("Add", scores, b.cast(attn_mask, query.dtype))
    weights = b.op("Softmax", scores, axis=-1)
    if attn_mask is not None:
        # A row with everything masked gives zeros.
        nothing = b.op("IsNaN", weights, dtype=plugrad.bool)
        weights = b.op("Where", nothing, b.number(0, query.dtype), weights, dtype=query.dtype)
    return b.op("MatMul", weights, value)


def _repeated(b: Builder, x: Value, heads: Any) -> Value:
    """Heads of keys or values, repeated for all query heads that share them."""
    *batch, own, length, width = x.sizes
    if own == heads:
        return x
    times = heads // own
    wide = b.expand(b.unsqueeze(x, x.ndim - 2), [*batch, own, times, length, width])
    return b.reshape(wide, [*batch, product([own, times]), length, width])
