"""Rules of attention; its leading dimensions broadcast."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import logical_rank, logical_sizes, padded, spread
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def _in_front(info: VmapInfo, dims: Dims, tensors: tuple[Any, ...]) -> tuple[list[Any], int]:
    """The tensors with the batch's dimension first and as many others, and how many these are."""
    given = [(t, dim) for t, dim in zip(tensors, dims, strict=True) if t is not None]
    rank = max(logical_rank(t, dim) for t, dim in given)
    front = [
        None if t is None else padded(spread(t, dim, info.batch_size), 0, rank)
        for t, dim in zip(tensors, dims, strict=True)
    ]
    return front, rank


def attention(
    info: VmapInfo,
    dims: Dims,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any]:
    front, _ = _in_front(info, dims[:4], (query, key, value, attn_mask))
    attend: Any = F._scaled_dot_product_attention
    return attend(*front, is_causal, scale), (0, 0)


def attention_backward(
    info: VmapInfo,
    dims: Dims,
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any,
    out: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
    output_mask: tuple[bool, ...],
) -> tuple[Any, Any]:
    tensors = (grad_out, query, key, value, attn_mask, out)
    front, rank = _in_front(info, dims[:6], tensors)
    sums = padded(spread(logsumexp, dims[6], info.batch_size), 0, rank - 1)
    backward: Any = F._scaled_dot_product_attention_backward
    found = backward(*front, sums, is_causal, scale, list(output_mask))
    shaped: list[Any] = []
    for grad, tensor, dim in zip(found, tensors[1:5], dims[1:5], strict=True):
        if grad is None or tensor is None:
            shaped.append(None)
            continue
        sizes = (info.batch_size, *logical_sizes(tensor, dim))
        shaped.append(grad if sizes_of(grad) == sizes else grad.reshape(sizes))
    return tuple(shaped), tuple([None if item is None else 0 for item in shaped])


RULES: Final[dict[str, Rule]] = {
    "_scaled_dot_product_attention": attention,
    "_scaled_dot_product_attention_backward": attention_backward,
}
