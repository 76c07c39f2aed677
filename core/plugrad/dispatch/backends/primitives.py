"""Which operators are primitive: a backend must provide them, as no decomposition computes them."""

from __future__ import annotations

from plugrad.dispatch import keys
from plugrad.dispatch.operator import Operator, all_operators, find_operator


def is_decomposed(op: Operator) -> bool:
    """Whether it has a function that computes it with other operators."""
    return (
        op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is not None
        or op.kernel_for(keys.COMPOSITE_EXPLICIT_AUTOGRAD) is not None
    )


def functional_of(op: Operator) -> Operator | None:
    """The operator that an in-place one is made from, with `copy_`."""
    if not op.schema.is_inplace:
        return None
    suffix = f".{op.overload}" if op.overload else ""
    return find_operator(f"{op.namespace}::{op.name[:-1]}{suffix}")


def is_primitive(op: Operator) -> bool:
    """Whether only a backend's kernel can compute it."""
    return not is_decomposed(op) and functional_of(op) is None


def core_primitives() -> list[Operator]:
    """The primitives from which all operators of level core can be composed."""
    return [op for op in all_operators() if op.level == "core" and is_primitive(op)]
