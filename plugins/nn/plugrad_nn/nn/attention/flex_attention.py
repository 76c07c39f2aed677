"""Attention with scores and masks from user functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.attention.block_masks import (
    BLOCK,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    over_places,
    places,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

# By PyTorch's names, which packages import.
_DEFAULT_SPARSE_BLOCK_SIZE = BLOCK
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels, which have no effect."""


class AuxRequest(NamedTuple):
    """The additional results of `flex_attention`.

    >>> import plugrad
    >>> plugrad.nn.attention.flex_attention.AuxRequest(lse=True)
    AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Further results of `flex_attention`: logsumexp and maximum of each row of scores.

    >>> import plugrad
    >>> plugrad.nn.attention.flex_attention.AuxOutput()
    AuxOutput(lse=None, max_scores=None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with functions of a program for the scores and the mask.

    All scores are in memory at once, in float32 at least. A pair is used if its block is listed in
    the mask and the mask's function allows it; in PyTorch only compiled kernels read the list. Rows
    without any pair give zeros.

    Args:
        query: (B, H, L, E).
        key: (B, H, S, E).
        value: (B, H, S, Ev); the result is (B, H, L, Ev).
        score_mod: a function of a score, batch, head, row and column, tensors of shape (); it
            returns the score to use. It may read other tensors, which get gradients.
        block_mask: the pairs that are used; see `create_block_mask`.
        scale: of the scores; 1 / sqrt(E) by default.
        enable_gqa: whether several heads of the query share one of key and value.
        return_lse: give the logarithms of the sums of the scores' exponentials, too: (B, H, L).
        kernel_options: options of PyTorch's kernels, which have no effect.
        return_aux: additional results to return, as an `AuxOutput`.

    Raises:
        NotImplementedError: an argument has not four dimensions.
        ValueError: heads, batch sizes or the mask's lengths do not fit; or `return_lse` and
            `return_aux` are both given.

    Source: Vaswani et al., Attention Is All You Need, 2017, equation 1.

    >>> import plugrad
    >>> from plugrad.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> x = plugrad.arange(3.0).reshape(1, 1, 3, 1)
    >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 3, 3)
    >>> flex_attention(plugrad.zeros_like(x), x, x, block_mask=causal).flatten()
    tensor([0.0000, 0.5000, 1.0000])
    >>> def nearer(score, batch, head, q, k):
    ...     return score - (q - k).abs()
    >>> flex_attention(plugrad.zeros_like(x), x, x, score_mod=nearer).flatten()
    tensor([0.4248, 1.0000, 1.5752])
    """
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    _check(query, key, value, block_mask, enable_gqa)
    heads = query.shape[1]
    if enable_gqa and heads != key.shape[1]:
        key, value = (one.repeat_interleave(heads // one.shape[1], 1) for one in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.mT
    if scores.dtype not in (plugrad.float32, plugrad.float64):
        scores = scores.float()
    scores = scores * factor
    sizes = tuple(scores.shape)
    if score_mod is not None:
        scores = over_places(score_mod, scores=True)(scores, *places(sizes, scores.device))
    if block_mask is not None:
        scores = scores.where(block_mask.pairs(sizes[0], sizes[1]), -math.inf)
    found = _weights(scores).to(value.dtype) @ value
    if return_lse:
        return found, scores.logsumexp(-1)
    if return_aux is None:
        return found
    lse = scores.logsumexp(-1) if return_aux.lse else None
    return found, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)


def _weights(scores: Tensor) -> Tensor:
    """Their softmax; zeros in rows without allowed pairs."""
    nothing = scores.detach().isneginf().all(-1, keepdim=True)
    if not bool(nothing.any()):
        return scores.softmax(-1)
    return scores.masked_fill(nothing, 0).softmax(-1).masked_fill(nothing, 0)


def _check(
    query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool
) -> None:
    if not query.ndim == key.ndim == value.ndim == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, others = query.shape[1], key.shape[1]
    if not enable_gqa and heads != others:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % others:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={others}."
        )
    if query.shape[0] != key.shape[0] and (block_mask is None or key.shape[0] != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but "
            f"got block_mask={block_mask}, Bq={query.shape[0]}, and Bkv={key.shape[0]}."
        )
    if block_mask is None:
        return
    rows, columns = query.shape[-2], key.shape[-2]
    if block_mask.seq_lengths != (rows, columns):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={rows} "
            f"and kv_len={columns}. Make one with the right lengths, or cut a longer one with "
            "block_mask._adjust(q_len, kv_len)."
        )
    for name, given, there in zip("BH", block_mask.shape, query.shape, strict=False):
        if given not in (1, there):
            raise ValueError(
                f"block_mask was created for {name}={given}, but query has {name}={there}"
            )
