"""Finds the kernel in a backend's tables that computes an operator."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.operator import Operator, declared_operators


def raw_kernel_of(op: Operator, active: ActiveBackend) -> Any:
    """The kernel of a backend's tables that computes an operator, or None.

    A kernel under a base name computes all overloads, except compositions next to an overload that
    is not one: `var` computes `var.correction`, but does not know the arguments of `var(input,
    unbiased)`.
    """
    raw = active.raw_kernel(op.kernel_name, op.overload)
    if raw is None or op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is None:
        return raw
    if op.overload and f"{op.kernel_name}.{op.overload}" in active.kernels:
        return raw
    beside = [other for other in declared_operators() if other.kernel_name == op.kernel_name]
    composed = [o.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is not None for o in beside]
    return raw if all(composed) else None
