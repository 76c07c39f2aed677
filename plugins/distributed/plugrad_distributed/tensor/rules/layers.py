"""Layers: normalisation, softmax, embedding, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard, local_part
from plugrad_distributed.tensor.rules.random import generator_for, part
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, aligned

__all__ = ["RULES"]

R, P = Replicate(), Partial("sum")


def _layer_norm(
    input: DTensorSpec, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: Any
) -> list[Choice]:
    """Sharded along dimensions that are not normalized."""
    return [
        ([Shard(dim)] * 3, [Shard(dim), None, *aligned((weight, bias), lambda _: R), None])
        for dim in range(input.ndim - len(normalized_shape))
    ]


def _layer_norm_backward(
    grad_out: DTensorSpec, input: DTensorSpec, normalized_shape: Sequence[int], *rest: Any
) -> list[Choice]:
    _, _, weight, bias, mask = rest
    return [
        (
            [Shard(dim), P, P],
            [
                *([Shard(dim)] * 2),
                None,
                *([Shard(dim)] * 2),
                *aligned((weight, bias, mask), lambda _: R),
            ],
        )
        for dim in range(input.ndim - len(normalized_shape))
    ]


def _rms_norm(
    input: DTensorSpec, normalized_shape: Sequence[int], weight: Any, eps: Any
) -> list[Choice]:
    return [
        ([Shard(dim)] * 2, [Shard(dim), None, *aligned((weight,), lambda _: R), None])
        for dim in range(input.ndim - len(normalized_shape))
    ]


def _rms_norm_backward(
    grad_out: DTensorSpec, input: DTensorSpec, normalized_shape: Sequence[int], *rest: Any
) -> list[Choice]:
    _, weight, mask = rest
    return [
        (
            [Shard(dim), P],
            [*([Shard(dim)] * 2), None, Shard(dim), *aligned((weight, mask), lambda _: R)],
        )
        for dim in range(input.ndim - len(normalized_shape))
    ]


def _softmax(self: DTensorSpec, dim: int, half_to_float: bool) -> list[Choice]:
    return [([Shard(one)], [Shard(one), None, None]) for one in range(self.ndim)]


def _softmax_backward(
    grad_output: DTensorSpec, output: DTensorSpec, dim: int, *rest: Any
) -> list[Choice]:
    none = [None] * (len(rest) + 1)
    return [([Shard(one)], [Shard(one), Shard(one), *none]) for one in range(output.ndim)]


def _across(call: Any, dim: int) -> list[str]:
    """The groups over which a dimension is sharded."""
    return [
        call.mesh.get_group(mesh_dim).name
        for mesh_dim, placement in enumerate(call.plan.inputs[0])
        if placement.is_shard(dim % max(call.args[0].ndim, 1))
    ]


def _reduced(part: Tensor, reduce_op: str, groups: Sequence[str]) -> Tensor:
    for group in groups:
        part = plugrad.ops.distributed.all_reduce(part, reduce_op, group)
    return part


def _normalize(call: Any, args: list[Any]) -> Any:
    """Softmax along a sharded dimension: the ranks reduce the maximum, then the sum."""
    self, dim, half_to_float = args
    groups = _across(call, dim)
    if not groups:
        return call.op.call(tuple(args))
    if half_to_float:
        self = self.to(plugrad.float32)
    size = list(self.shape)
    size[dim] = 1
    top = self.amax(dim, keepdim=True) if self.shape[dim] else self.new_full(size, -math.inf)
    shifted = self - _reduced(top, "max", groups)
    powers = shifted.exp()
    total = _reduced(powers.sum(dim, keepdim=True), "sum", groups)
    return shifted - total.log() if call.op.name == "_log_softmax" else powers / total


def _normalize_backward(call: Any, args: list[Any]) -> Any:
    grad, output, dim, dtype = args
    groups = _across(call, dim)
    if not groups:
        return call.op.call(tuple(args))
    if call.op.name == "_log_softmax_backward_data":
        found = grad - output.exp() * _reduced(grad.sum(dim, keepdim=True), "sum", groups)
    else:
        weighted = grad * output
        found = weighted - output * _reduced(weighted.sum(dim, keepdim=True), "sum", groups)
    return found.to(dtype)


def _embedding(weight: DTensorSpec, indices: DTensorSpec, *rest: Any) -> list[Choice]:
    none = [None] * len(rest)
    return [
        *(([Shard(dim)], [R, Shard(dim), *none]) for dim in range(indices.ndim)),
        ([Shard(indices.ndim)], [Shard(1), R, *none]),
        ([P], [Shard(0), R, *none]),
    ]


def _embed(call: Any, args: list[Any]) -> Any:
    """Rows on other ranks are zero here, so that the sum over the ranks is the result."""
    weight, indices, *rest = args
    spec = call.args[0]
    sizes, offsets = local_part(spec.shape, call.mesh, call.plan.inputs[0])
    if sizes[0] == spec.shape[0]:
        return call.op.call(tuple(args))
    here = (indices >= offsets[0]) & (indices < offsets[0] + sizes[0])
    if sizes[0] == 0:
        return weight.new_zeros((*indices.shape, weight.shape[1]))
    rows = call.op.call((weight, (indices - offsets[0]) * here, *rest))
    # No multiplication by 0: the row used in place of others may be infinite.
    return rows.masked_fill(~here.unsqueeze(-1), 0)


def _embedding_backward(grad_output: DTensorSpec, indices: DTensorSpec, *rest: Any) -> list[Choice]:
    none = [None] * len(rest)
    return [
        *(([P], [Shard(dim), Shard(dim), *none]) for dim in range(indices.ndim)),
        ([Shard(1)], [Shard(indices.ndim), R, *none]),
        ([P], [P, R, *none]),
    ]


def _embedding_shape(
    grad_output: DTensorSpec, indices: DTensorSpec, num_weights: int, *rest: Any
) -> list[tuple[int, ...]]:
    return [(num_weights, grad_output.shape[-1])]


def _attention_dims(query: DTensorSpec, key: DTensorSpec, value: DTensorSpec) -> list[int]:
    """Dimensions before the sequence and its features: batch and heads."""
    return [
        dim
        for dim in range(query.ndim - 2)
        if query.shape[dim] == key.shape[dim] == value.shape[dim] and query.fills(dim)
    ]


def _mask(mask: Any, ndim: int, dim: int) -> Placement | None:
    if mask is None:
        return None
    own = dim - (ndim - mask.ndim)
    return R if own < 0 or mask.shape[own] == 1 else Shard(own)


def _attention(query: Any, key: Any, value: Any, attn_mask: Any, *rest: Any) -> list[Choice]:
    none = [None] * len(rest)
    return [
        ([Shard(dim)] * 2, [*([Shard(dim)] * 3), _mask(attn_mask, query.ndim, dim), *none])
        for dim in _attention_dims(query, key, value)
    ]


def _attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, attn_mask: Any, *rest: Any
) -> list[Choice]:
    found: list[Choice] = []
    for dim in _attention_dims(query, key, value):
        cut = Shard(dim)
        mask = _mask(attn_mask, query.ndim, dim)
        # The gradient of a broadcast mask is a sum over the heads of all ranks.
        of_mask = P if mask == R else mask or R
        found.append(([cut] * 3 + [of_mask], [cut] * 4 + [mask] + [cut] * 2 + [None] * 3))
    return found


def _dropout(input: DTensorSpec, *rest: Any) -> list[Choice]:
    none = [None] * len(rest)
    return [([Shard(dim)] * 2, [Shard(dim), *none]) for dim in range(input.ndim)]


def _drop(call: Any, args: list[Any]) -> Any:
    """The mask is drawn for the whole tensor, and sharded like the tensor."""
    local, p, train, generator = args
    if train is False:
        return call.op.call(tuple(args))
    spec = call.args[0]
    model = plugrad.empty_strided(spec.shape, spec.steps, dtype=local.dtype).fill_(1)
    kept = call.op.call((model, p, train, generator_for(call.mesh, generator)))[1]
    mask: Tensor = part(call, kept, call.plan.outputs[0]).to(local.device)
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
    return local * mask * scale, mask


RULES: dict[str, Rule] = {
    "native_layer_norm": Rule(_layer_norm),
    "native_layer_norm_backward": Rule(_layer_norm_backward),
    "_fused_rms_norm": Rule(_rms_norm),
    "_fused_rms_norm_backward": Rule(_rms_norm_backward),
    "_softmax": Rule(_softmax, _normalize),
    "_log_softmax": Rule(_softmax, _normalize),
    "_softmax_backward_data": Rule(_softmax_backward, _normalize_backward),
    "_log_softmax_backward_data": Rule(_softmax_backward, _normalize_backward),
    "embedding": Rule(_embedding, _embed),
    "embedding_dense_backward": Rule(_embedding_backward, None, _embedding_shape),
    "_scaled_dot_product_attention": Rule(_attention),
    "_scaled_dot_product_attention_backward": Rule(_attention_backward),
    "native_dropout": Rule(_dropout, _drop),
}
