"""Gradients of statistics."""

from __future__ import annotations

# Interpreted: loaded on demand.
from plugrad.ops.formulas.reductions import evenly_distribute as _evenly_distribute
from plugrad.tensor.base import TensorBase


def evenly_distribute(grad: TensorBase, x: TensorBase, value: TensorBase) -> TensorBase:
    """Among all elements equal to the one that was chosen."""
    found: TensorBase = _evenly_distribute(grad, x, value)  # type: ignore[arg-type]  # the stub's
    return found
