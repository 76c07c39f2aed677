"""Causal masks of attention as objects, which need no memory."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import plugrad
from plugrad import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a mask that is not square begins.

    UPPER_LEFT: row i attends to columns up to i. LOWER_RIGHT: the last row attends to all columns.

    >>> import plugrad
    >>> plugrad.nn.attention.bias.CausalVariant.LOWER_RIGHT.value
    2
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias:
    """A causal mask (L, S) for `attn_mask` of `nn.functional.scaled_dot_product_attention`.

    Args:
        variant: where its diagonal begins.
        seq_len_q: L.
        seq_len_kv: S.

    Raises:
        AssertionError: `variant` is not a `CausalVariant`.

    >>> from plugrad.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3).materialize()
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        if variant is CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                "the first rows of a lower right causal bias attend to nothing when seq_len_q > "
                "seq_len_kv, so their results are zero",
                stacklevel=3,
            )
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv

    @property
    def shape(self) -> plugrad.Size:
        return plugrad.Size((self.seq_len_q, self.seq_len_kv))

    def size(self) -> plugrad.Size:
        """(L, S)"""
        return self.shape

    @property
    def is_upper_left(self) -> bool:
        """Whether row i attends only to columns up to i, as with `is_causal=True`."""
        return self.variant is CausalVariant.UPPER_LEFT or self.seq_len_q == self.seq_len_kv

    def materialize(self, device: Any = None) -> Tensor:
        """The mask (L, S) of booleans: True for allowed pairs."""
        ones = plugrad.ones(self.seq_len_q, self.seq_len_kv, dtype=plugrad.bool, device=device)
        return plugrad.tril(ones, 0 if self.is_upper_left else self.seq_len_kv - self.seq_len_q)

    # PyTorch's name.
    _materialize = materialize

    def __repr__(self) -> str:
        return repr(self.materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """A causal mask (L, S): row i attends to the columns up to i.

    Raises AssertionError unless there are two sizes.

    >>> from plugrad.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return _of_size(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """A causal mask (L, S) in which the last row attends to all columns.

    Raises AssertionError unless there are two sizes.

    >>> from plugrad.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(1, 3)
    tensor([[True, True, True]])
    """
    return _of_size(CausalVariant.LOWER_RIGHT, size)


def _of_size(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors")
    return CausalBias(variant, size[0], size[1])
