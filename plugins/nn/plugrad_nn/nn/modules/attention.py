"""Attention of several heads as a module: MultiheadAttention."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.linear import Linear
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch prints for the last projection of attention."""


class MultiheadAttention(Module):
    """Attention of several heads: softmax(q k^T / sqrt(E / num_heads)) v, for projected q, k and v.

    Args:
        embed_dim: E, the width of the query and of the result; a multiple of `num_heads`.
        num_heads: into how many heads E is split.
        dropout: in training, the probability of zeroing a weight.
        bias: add a shift to all projections.
        add_bias_kv: add a learned row to key and value.
        add_zero_attn: add a row of zeros to key and value.
        kdim, vdim: the widths of key and value, by default E.
        batch_first: the batch is the first dimension, not the second.

    The weights start with `xavier_uniform_`, the shifts at zero.

    Source: Vaswani et al., Attention Is All You Need, 2017.

    >>> import plugrad
    >>> attention = plugrad.nn.MultiheadAttention(4, num_heads=2, batch_first=True)
    >>> x = plugrad.ones(1, 3, 4)
    >>> result, weights = attention(x, x, x)
    >>> result.shape, weights.shape
    (plugrad.Size([1, 3, 4]), plugrad.Size([1, 3, 3]))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    out_proj: Linear
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        shapes: dict[str, tuple[int, ...] | None] = dict.fromkeys(
            ("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight")
        )
        if self._qkv_same_embed_dim:
            shapes["in_proj_weight"] = (3 * embed_dim, embed_dim)
        else:
            shapes["q_proj_weight"] = (embed_dim, embed_dim)
            shapes["k_proj_weight"] = (embed_dim, self.kdim)
            shapes["v_proj_weight"] = (embed_dim, self.vdim)
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        extra = (1, 1, embed_dim) if add_bias_kv else None
        for name, shape in (shapes | {"bias_k": extra, "bias_v": extra}).items():
            weight = None
            if shape is not None:
                weight = Parameter(plugrad.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, weight)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        for shift in (self.in_proj_bias, self.out_proj.bias):
            if shift is not None:
                init.zeros_(shift)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result and the weights.

        Args:
            query: (L, N, E), with `batch_first` (N, L, E), or (L, E); the result is the same.
            key, value: (S, N, kdim) and (S, N, vdim), or as the query.
            key_padding_mask: (N, S) or (S); True at keys to ignore, or numbers to add to the
                scores.
            need_weights: return weights (N, L, S); None without, which is faster.
            attn_mask: (L, S) or (N * num_heads, L, S); True at pairs to ignore, or numbers to add
                to the scores.
            average_attn_weights: if False, return the weights of each head, (N, num_heads, L, S).
            is_causal: a hint that `attn_mask` is the causal one; RuntimeError without a mask.
        """
        swap = self.batch_first and query.dim() == 3
        if swap:
            # Identical tensors stay identical, so that a single product projects them.
            swapped = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = (swapped[id(x)] for x in (query, key, value))
        result, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (result.transpose(0, 1) if swap else result), weights
