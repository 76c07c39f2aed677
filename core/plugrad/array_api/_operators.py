"""The operators behind the namespace, as users and type checkers see them."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING

from plugrad.dtype import FLOATING

if TYPE_CHECKING:
    import plugrad as F
    from plugrad import Tensor
else:
    from plugrad._generated import functions as F
    from plugrad._tensor.classes import Tensor

__all__ = ["F", "Tensor", "floor_divide", "own", "plain", "remainder"]


def own(result: Tensor) -> Tensor:
    """A result that its derivative uses, for callers who may write to it: a copy, if recorded."""
    return F.clone(result) if result.requires_grad else result


def plain(result: Tensor) -> Tensor:
    """A result without the bits of lazy conjugation and negation, which NumPy lacks."""
    return F.resolve_neg(F.resolve_conj(result))


def floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """With an infinite operand it is the true quotient, an infinity or a signed zero."""
    found = F.floor_divide(a, b)
    if a.dtype.category != FLOATING:
        return found
    infinite = F.logical_or(F.isinf(a), F.isinf(b))
    return F.where(infinite, F.div(a.detach(), b.detach()), found)


def remainder(a: Tensor, b: Tensor) -> Tensor:
    """A zero has the sign of the divisor, except in recorded calls: gradients do not need it."""
    found = F.remainder(a, b)
    if a.dtype.category != FLOATING or found.requires_grad:
        return found
    return F.where(found == 0, F.copysign(found, b), found)
