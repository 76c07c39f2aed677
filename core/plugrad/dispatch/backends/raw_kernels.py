"""Finds the kernel in a backend's tables that computes an operator."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.operator import Operator, declared_operators


def raw_kernel_of(op: Operator, active: ActiveBackend) -> Any:
    """The kernel of a backend's tables that computes an operator, or None.

    One that stands under a base name serves all overloads, but no composition beside an overload
    that is none: `var` is made for `var.correction`; what `var(input, unbiased)` takes it does not
    know.
    """
    raw = active.raw_kernel(op.kernel_name, op.overload)
    if raw is None or op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is None:
        return raw
    if op.overload and f"{op.kernel_name}.{op.overload}" in active.kernels:
        return raw
    beside = [other for other in declared_operators() if other.kernel_name == op.kernel_name]
    composed = [o.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is not None for o in beside]
    return raw if all(composed) else None
