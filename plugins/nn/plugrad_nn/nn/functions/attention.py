"""Attention as plain functions: of projected sequences, and of several heads with projections."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.attention.bias import CausalBias
from plugrad_nn.nn.overridable import overridable


@overridable
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | CausalBias | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(scale * query @ key.T + attn_mask) @ value.

    Args:
        query: (*, L, E).
        key: (*, S, E).
        value: (*, S, Ev); the result is (*, L, Ev).
        attn_mask: boolean, True for allowed pairs, or a floating tensor that is added; (*, L, S).
            Or one of `nn.attention.bias`.
        dropout_p: the probability of zeroing a weight; applied whenever it is not 0.
        is_causal: whether row i attends only to the columns up to i. A tensor as `attn_mask` is
            applied, too.
        scale: 1 / sqrt(E) by default.
        enable_gqa: whether several heads of the query share one of key and value.

    Source: Vaswani et al., Attention Is All You Need, 2017, equation 1.

    >>> import plugrad
    >>> same, value = plugrad.zeros(2, 4), plugrad.tensor([[1.0], [3.0]])
    >>> plugrad.nn.functional.scaled_dot_product_attention(same, same, value, is_causal=True)
    tensor([[1.],
            [2.]])
    """
    if isinstance(attn_mask, CausalBias):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        is_causal = attn_mask.is_upper_left
        attn_mask = None if is_causal else attn_mask.materialize(query.device)
    return plugrad.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
    )


@overridable
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention with input and output projections; returns (result, weights).

    Args:
        query: (L, N, E), or (L, E) without a batch.
        key, value: (S, N, E) or (S, E); other widths with separate projections.
        embed_dim_to_check: E, which is compared with the query's.
        num_heads: how many heads E is divided among.
        in_proj_weight: (3 * E, E), the weights of query, key and value on top of each other;
            `q_proj_weight` and the others with `use_separate_proj_weight`.
        in_proj_bias: (3 * E), likewise.
        bias_k, bias_v: (1, 1, E), one more row of key and value.
        add_zero_attn: whether key and value get one more row, of zeros.
        dropout_p: the probability of zeroing a weight, in training.
        out_proj_weight, out_proj_bias: (E, E) and (E), for the output projection.
        training: whether to drop weights.
        key_padding_mask: (N, S); True at rows of the key to ignore, or numbers to add to the
            scores.
        need_weights: whether the weights are the second result: (N, L, S), or with
            `average_attn_weights=False` (N, num_heads, L, S).
        attn_mask: (L, S) or (N * num_heads, L, S); True at pairs to ignore, or numbers to add to
            the scores.
        use_separate_proj_weight: whether the three next arguments replace `in_proj_weight`.
        q_proj_weight, k_proj_weight, v_proj_weight: (E, E), (E, width of key), (E, width of value).
        static_k, static_v: (N * num_heads, S, E / num_heads) instead of projected ones.
        average_attn_weights: whether the weights are averaged over the heads.
        is_causal: a hint that `attn_mask` is the causal one.

    Raises:
        AssertionError: shapes do not fit, or an argument that another one requires is missing.
        RuntimeError: `is_causal` is given without `attn_mask`.

    Source: Vaswani et al., Attention Is All You Need, 2017, section 3.2.2.

    >>> import plugrad
    >>> x, eye = plugrad.ones(2, 1, 2), plugrad.eye(2)
    >>> result, weights = plugrad.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, eye.repeat(3, 1), None, None, None, False, 0.0, eye, None
    ... )
    >>> weights
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    is_batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batched:
        query, key, value = _with_batch(query, key, value)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = tuple(query.shape)
    head_width = width // num_heads
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    padding = additive_mask(key_padding_mask, "key_padding_mask", attn_mask, query)
    if is_causal and padding is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = additive_mask(attn_mask, "attn_mask", None, query)
        is_causal = is_causal and padding is None and not need_weights
    assert width == embed_dim_to_check, (
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
    )
    assert head_width * num_heads == width, (
        f"embed_dim {width} not divisible by num_heads {num_heads}"
    )
    if use_separate_proj_weight:
        assert key.shape[:2] == value.shape[:2], (
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    else:
        assert key.shape == value.shape, (
            f"key shape {key.shape} does not match value shape {value.shape}"
        )
    weights: Sequence[Tensor | None]
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, weight in zip("qkv", weights, strict=True):
            assert weight is not None, (
                f"use_separate_proj_weight is True but {name}_proj_weight is None"
            )
    else:
        assert in_proj_weight is not None, (
            "use_separate_proj_weight is False but in_proj_weight is None"
        )
        weights = in_proj_weight.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    if in_proj_weight is not None and not use_separate_proj_weight and query is key is value:
        q, k, v = plugrad.linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)
    else:
        q, k, v = (
            plugrad.linear(*given)  # type: ignore[arg-type]  # the weights are there
            for given in zip((query, key, value), weights, biases, strict=True)
        )
    if attn_mask is not None:
        attn_mask = _check_mask(attn_mask, length, key.shape[0], batch * num_heads)
    extra = 0
    if bias_k is not None and bias_v is not None:
        assert static_k is None, "bias cannot be added to static key."
        assert static_v is None, "bias cannot be added to static value."
        k = plugrad.cat([k, bias_k.repeat(1, batch, 1)])
        v = plugrad.cat([v, bias_v.repeat(1, batch, 1)])
        extra = 1
    else:
        assert bias_k is None, "bias_k must be None when bias_v is None"
        assert bias_v is None, "bias_v must be None when bias_k is None"
    heads = batch * num_heads
    q = q.reshape(length, heads, head_width).transpose(0, 1)
    k = _heads(k, "static_k", static_k, heads, head_width)
    v = _heads(v, "static_v", static_v, heads, head_width)
    if add_zero_attn:
        extra += 1
        zeros = plugrad.zeros(heads, 1, head_width, dtype=k.dtype, device=k.device)
        k, v = plugrad.cat([k, zeros], 1), plugrad.cat([v, zeros], 1)
    attn_mask, padding = _longer(attn_mask, extra), _longer(padding, extra)
    columns = k.shape[1]
    if padding is not None:
        assert tuple(padding.shape) == (batch, columns), (
            f"expecting key_padding_mask shape of {(batch, columns)}, but got {padding.shape}"
        )
        spread = padding.reshape(batch, 1, 1, columns).expand(-1, num_heads, -1, -1)
        spread = spread.reshape(heads, 1, columns)
        attn_mask = spread if attn_mask is None else attn_mask + spread
    drop = dropout_p if training else 0.0
    found: Tensor | None = None
    if need_weights:
        q, across = q * math.sqrt(1.0 / head_width), k.transpose(1, 2)
        if attn_mask is None:
            scores = plugrad.bmm(q, across)
        else:
            scores = plugrad.baddbmm(attn_mask, q, across)
        shares = plugrad.softmax(scores, -1)
        shares = plugrad.dropout(shares, drop, True) if drop > 0.0 else shares
        result = plugrad.bmm(shares, v)
        found = shares.reshape(batch, num_heads, length, columns)
        found = found.mean(dim=1) if average_attn_weights else found
        found = found if is_batched else found.squeeze(0)
    else:
        shape = (batch, num_heads, -1, head_width)
        if attn_mask is not None:
            first = 1 if attn_mask.shape[0] == 1 and heads != 1 else batch
            attn_mask = attn_mask.reshape(first, -1, *attn_mask.shape[1:])
        result = plugrad.scaled_dot_product_attention(
            q.reshape(shape), k.reshape(shape), v.reshape(shape), attn_mask, drop, is_causal
        ).reshape(heads, length, head_width)
    rows = result.transpose(0, 1).reshape(length * batch, width)
    out = plugrad.linear(rows, out_proj_weight, out_proj_bias)
    out = out.reshape(length, batch, out.shape[1])
    return (out if is_batched else out.squeeze(1)), found


def _check_ranks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether there is a batch."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    kind = "batched" if rank == 3 else "unbatched"
    if (key.dim(), value.dim()) != (rank, rank):
        raise AssertionError(
            f"For {kind} ({rank}-D) `query`, expected `key` and `value` to be {rank}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None:
        assert key_padding_mask.dim() == rank - 1, (
            f"For {kind} ({rank}-D) `query`, expected `key_padding_mask` to be `None` or "
            f"{rank - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        assert attn_mask.dim() in (2, 3), (
            f"For {kind} ({rank}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D "
            f"but found {attn_mask.dim()}-D tensor instead"
            f"For {kind} ({rank}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but "
            f"found {attn_mask.dim()}-D tensor instead"
        )
        if rank == 2 and attn_mask.dim() == 3:
            wanted = (num_heads, query.shape[0], key.shape[0])
            assert tuple(attn_mask.shape) == wanted, (
                f"Expected `attn_mask` shape to be {wanted} but got {tuple(attn_mask.shape)}"
            )
    return rank == 3


def _with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A batch of one; equal tensors stay the same object."""
    q = query.unsqueeze(1)
    k = q if key is query else key.unsqueeze(1)
    return q, k, k if value is key else value.unsqueeze(1)


def additive_mask(
    mask: Tensor | None,
    name: str,
    other: Tensor | None,
    query: Tensor,
    other_name: str = "attn_mask",
) -> Tensor | None:
    """A mask as numbers to add to the scores."""
    if mask is None:
        return None
    assert mask.dtype is plugrad.bool or mask.is_floating_point(), (
        f"only bool and floating types of {name} are supported"
    )
    if other is not None and mask.dtype is not other.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for "
            "both instead.",
            stacklevel=4,
        )
    if mask.is_floating_point():
        return mask
    zeros = plugrad.zeros_like(mask, dtype=query.dtype)
    return zeros.masked_fill(mask, -math.inf)


def _check_mask(mask: Tensor, rows: int, columns: int, heads: int) -> Tensor:
    wanted = (rows, columns) if mask.dim() == 2 else (heads, rows, columns)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _heads(x: Tensor, name: str, static: Tensor | None, heads: int, width: int) -> Tensor:
    """(S, N, E) as (N * num_heads, S, E / num_heads), or the static tensor in its place."""
    if static is None:
        return x.reshape(x.shape[0], heads, width).transpose(0, 1)
    assert static.shape[0] == heads, (
        f"expecting {name}.size(0) of {heads}, but got {static.shape[0]}"
    )
    assert static.shape[2] == width, (
        f"expecting {name}.size(2) of {width}, but got {static.shape[2]}"
    )
    return static


def _longer(mask: Tensor | None, extra: int) -> Tensor | None:
    """A mask with columns for the rows added to key and value."""
    if mask is None or extra == 0:
        return mask
    zeros = plugrad.zeros(*mask.shape[:-1], extra, dtype=mask.dtype, device=mask.device)
    return plugrad.cat([mask, zeros], -1)
