"""Gradients of solutions, inverses and determinants.

Source: Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008, sections 2.2 and 2.3.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def solve_backward(
    grad: Tensor, A: Tensor, result: Tensor, mask: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor]:
    to_right = F._linalg_solve(F.mH(A), grad)
    if not mask[0]:
        return None, to_right
    return -F.matmul(to_right, F.mH(result)), to_right


def inv_backward(grad: Tensor, result: Tensor) -> Tensor:
    turned = F.mH(result)
    return -F.matmul(turned, F.matmul(grad, turned))


def det_backward(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    scale = (grad * result.conj()).unsqueeze(-1).unsqueeze(-1)
    return scale * F.mH(F.linalg_inv(A))
