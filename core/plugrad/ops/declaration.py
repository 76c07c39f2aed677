"""Kernels of generated operators that do not depend on a backend, registered from tables of names.

A family's module lists them as text, by kind: one compiled statement for each would be a tenth of
the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from plugrad.dispatch.adapters import BelowAutograd, CompositeKernel
from plugrad.dispatch.keys import (
    AD_INPLACE_OR_VIEW_KEY,
    AUTOGRAD_ALIAS,
    BACKEND_SELECT_KEY,
    COMPOSITE_EXPLICIT_AUTOGRAD,
    COMPOSITE_IMPLICIT_AUTOGRAD,
    DispatchKey,
)
from plugrad.dispatch.operator import Operator
from plugrad.graph.support import CompositeInplace, name_node_class
from plugrad.tensor.aliasing.alias_kernels import (
    InplaceViewKernel,
    ListMutationKernel,
    MutationKernel,
    ViewKernel,
)
from plugrad.tensor.calls.kernel_factory import BackendSelectKernel

# Makes a kernel from the operator, its table's entry, and the module's names.
Maker = Callable[[Operator, str, dict[str, Any]], Any]


def register_kernels(names: dict[str, Any], tables: dict[str, str]) -> None:
    """Register what a family's tables list.

    Args:
        names: the module's, where operator `x` is `OP_x`.
        tables: by kind, a key of `KINDS`, an operator, or `operator=value`, for each word.
    """
    for kind, table in tables.items():
        key, make = KINDS[kind]
        for identifier, value in words(table):
            op: Operator = names[f"OP_{identifier}"]
            kernel = make(op, value, names)
            if kind == "autograd":
                op.autograd_kernel = kernel
            op.register(key, kernel)


def name_nodes(names: dict[str, Any], table: str) -> None:
    """Give node classes the names that users see; `class=name` for each word."""
    for identifier, name in words(table):
        name_node_class(names[f"Node_{identifier}"], name)


def words(table: str) -> Iterator[tuple[str, str]]:
    """The entries of a table: the parts before and after the equals sign."""
    for word in table.split():
        identifier, _, value = word.partition("=")
        yield identifier, value


def _function(path: str, names: dict[str, Any]) -> Any:
    """What a name, or an attribute of a module, is in a family's module."""
    first, _, attribute = path.partition(".")
    return getattr(names[first], attribute) if attribute else names[first]


def _autograd(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return names[f"autograd_{value}"]


def _composite(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return CompositeKernel(_function(value, names), op)


def _explicit(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return BelowAutograd(_function(value, names), op)


def _composite_inplace(op: Operator, value: str, names: dict[str, Any]) -> Any:
    functional, count, *keywords = value.split(",")
    return CompositeInplace(names[f"OP_{functional}"], int(count), tuple(keywords))


def _view(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return ViewKernel(op, value == "differentiable")


def _inplace_view(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return InplaceViewKernel(op, names[f"OP_{value}"])


def _mutation(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return MutationKernel(op)


def _list_mutation(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return ListMutationKernel(op, tuple([int(place) for place in value.split(",")]))


def _backend_select(op: Operator, value: str, names: dict[str, Any]) -> Any:
    return BackendSelectKernel(op, int(value))


# The meaning of the words of a table: the key of the kernels, and how one is made.
KINDS: Final[dict[str, tuple[DispatchKey, Maker]]] = {
    "autograd": (AUTOGRAD_ALIAS, _autograd),
    "composite": (COMPOSITE_IMPLICIT_AUTOGRAD, _composite),
    "composite_inplace": (COMPOSITE_IMPLICIT_AUTOGRAD, _composite_inplace),
    "explicit": (COMPOSITE_EXPLICIT_AUTOGRAD, _explicit),
    "view": (AD_INPLACE_OR_VIEW_KEY, _view),
    "inplace_view": (AD_INPLACE_OR_VIEW_KEY, _inplace_view),
    "mutation": (AD_INPLACE_OR_VIEW_KEY, _mutation),
    "list_mutation": (AD_INPLACE_OR_VIEW_KEY, _list_mutation),
    "backend_select": (BACKEND_SELECT_KEY, _backend_select),
}
