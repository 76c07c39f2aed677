"""The table of batching rules; each family of operators adds its own."""

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from plugrad._generated.settings import GATHERED
from plugrad.dispatch.families import is_on_demand
from plugrad.dispatch.keys import COMPOSITE_IMPLICIT_AUTOGRAD
from plugrad.dispatch.operator import Operator

Rule = Callable[..., tuple[Any, Any]]

# What drawing random numbers raises where `randomness` is "error".
NO_RANDOMNESS: Final = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)


class VmapInfo:
    """Further information for a rule, besides the arguments.

    Attributes:
        batch_size: length of the dimension that is mapped over.
        randomness: "error", "different" or "same": whether the elements of the batch may draw
            random numbers, and whether they draw the same ones.

    >>> from plugrad.library import VmapInfo
    >>> VmapInfo(batch_size=3)
    VmapInfo(batch_size=3, randomness='error')
    """

    # No dataclass: importing plugrad would then import `dataclasses`.
    __slots__ = ("batch_size", "randomness")

    def __init__(self, batch_size: int, randomness: str = "error") -> None:
        self.batch_size = batch_size
        self.randomness = randomness

    def __repr__(self) -> str:
        return f"VmapInfo(batch_size={self.batch_size}, randomness={self.randomness!r})"


def with_settings(rule: Rule) -> Rule:
    """A rule, named like its operator, that gets the operator's settings as one object.

    `dims` still follow the schema.
    """
    gathered = GATHERED[rule.__name__]

    def with_arguments(info: VmapInfo, dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        return rule(info, dims, *gathered(*args))

    return with_arguments


# Those that are registered for one operator, the latest last; by qualified name.
_registered: Final[dict[str, list[Rule]]] = {}


def add_rule(op: Operator, rule: Rule) -> None:
    """Have an operator mapped by a rule, before others that it may have."""
    _registered.setdefault(op.qualified_name, []).append(rule)
    op.forget_resolved()


def remove_rule(op: Operator, rule: Rule) -> None:
    """Take back a rule that `add_rule` added."""
    rules = _registered.get(op.qualified_name, [])
    if rule in rules:
        rules.remove(rule)
    op.forget_resolved()


def rule_of(op: Operator) -> Rule | None:
    """An operator's batching rule; None if it has none, and is mapped by its decomposition."""
    registered = _registered.get(op.qualified_name)
    if registered:
        return registered[-1]
    known = _found.get(op.qualified_name)
    if known is None or known[0] is not op:
        known = _found[op.qualified_name] = (op, _find(op))
    return known[1]


_found: Final[dict[str, tuple[Operator, Rule | None]]] = {}


def _find(op: Operator) -> Rule | None:
    if op.namespace == "plugrad":
        rules = _rules(_PLACES[is_on_demand(op.qualified_name)])
        found = rules.get(op.full_name)
        if found is not None:
            return found
        # A composite is mapped through the operators it calls, unless a rule is meant for just this
        # overload, or it is elementwise.
        if op.name in rules and op.kernel_for(COMPOSITE_IMPLICIT_AUTOGRAD) is None:
            return rules[op.name]
    return importlib.import_module("plugrad.ops.batching.elementwise").rule_for(op)  # type: ignore[no-any-return]


# The locations of rules, for operators declared at import and for operators on demand. Modules of
# these packages have a table RULES: by full name ("sum", "add.Tensor"), or by base name for all
# overloads without one of their own. Rules call operators, so that they are imported when the first
# one is requested.
_PLACES: Final = ("plugrad.ops.batching", "plugrad.ops.on_demand.batching")


@cache
def _rules(package: str) -> dict[str, Rule]:
    """The tables of all modules of a package."""
    import pkgutil

    merged: dict[str, Rule] = {}
    for found in pkgutil.iter_modules(importlib.import_module(package).__path__):
        merged.update(getattr(importlib.import_module(f"{package}.{found.name}"), "RULES", {}))
    return merged
