"""Tangents of statistics."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import Any

from plugrad.ops.on_demand.formulas.statistics import evenly_distribute as evenly_distribute
from plugrad.ops.tangents import reductions


def along(t: Any, gradient: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The tangent of a reduction in which each result depends on the elements of one group."""
    return reductions.along(t, gradient, result, dim, keepdim)
