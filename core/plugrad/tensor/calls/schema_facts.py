"""Facts about an operator's calls, from its schema."""

from __future__ import annotations

from typing import Any, Final

from plugrad.dispatch.operator import Operator
from plugrad.return_types import result_type_of

_named: Final[dict[str, Any]] = {}


def named_results(op: Operator, *results: Any) -> Any:
    """Several results of a composite operator, under the names that its schema gives them."""
    made = _named.get(op.qualified_name)
    if made is None:
        made = result_type_of(op)
        _named[op.qualified_name] = made
    return made(*results)


def returns_one_tensor(op: Operator) -> bool:
    """Whether an operator returns a tensor, and always one."""
    returns = op.schema.returns
    if len(returns) != 1 or returns[0].type.base != "Tensor":
        return False
    return not returns[0].type.is_list and not returns[0].type.optional


def takes_one_tensor(op: Operator) -> bool:
    """Whether an operator's first argument is a tensor, and no other is one, or several."""
    types = [argument.type for argument in op.schema.arguments]
    if not types or types[0].base != "Tensor" or types[0].is_list or types[0].optional:
        return False
    return all(each.base not in ("Tensor", "Scalar") for each in types[1:])


def position_of(op: Operator, base: str) -> int:
    for index, argument in enumerate(op.schema.arguments):
        if argument.type.base == base:
            return index
    return -1
