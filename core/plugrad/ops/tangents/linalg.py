"""Tangents of products of matrices."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def times(t: Tensor, factor: Any) -> Any:
    return t if factor == 1 else t * factor


def linear_backward_tangents(
    input: Tensor, grad_output: Tensor, weight: Tensor, mask: tuple[bool, ...], output: int
) -> Any:
    """The tangents of one of the gradients toward input and weight, which is linear in the other's
    factor."""
    if not mask[output]:
        return None, None, None
    wanted = (output == 0, output == 1, False)
    found = C.call_linear_backward(input, grad_output, weight, wanted)
    return (found[0], None, None) if output == 0 else (None, found[1], None)
