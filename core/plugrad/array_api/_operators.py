"""The operators that the namespace is made of, as users and type checkers see them."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plugrad as F
    from plugrad import Tensor
else:
    from plugrad._generated import functions as F
    from plugrad._tensor.classes import Tensor

__all__ = ["F", "Tensor", "own", "plain"]


def own(result: Tensor) -> Tensor:
    """A result that its derivative uses, for callers who may write to it: a copy, if recorded."""
    return F.clone(result) if result.requires_grad else result


def plain(result: Tensor) -> Tensor:
    """A result without the bits of lazy conjugation and negation, which NumPy does not know."""
    return F.resolve_neg(F.resolve_conj(result))
