"""The methods of families that are loaded on demand: the first use of one loads its family."""

from __future__ import annotations

# Interpreted: its class gets attributes, and a descriptor has a __get__.
import sys
from typing import Any

from plugrad._generated import on_demand
from plugrad.dispatch.families import announce, load_family
from plugrad.tensor.calls.annotations import guard_receivers

_PREFIX = "plugrad._generated."

announce(on_demand.OPERATORS, on_demand.ELEMENTWISE)


class OnDemandMethods:
    """Methods of tensors. Each is a `_Later` until its family is loaded."""


class _Later:
    """A method that loads its family on first use."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        _load(on_demand.METHODS[self._name])
        # A plain function by now.
        return vars(OnDemandMethods)[self._name].__get__(instance, owner)


def _load(family: str) -> None:
    load_family(_PREFIX + family)
    made = sys.modules[_PREFIX + family].Methods
    if not isinstance(vars(OnDemandMethods)[_first_of(family)], _Later):
        return
    for name, method in list(vars(made).items()):
        if on_demand.METHODS.get(name) == family:
            # What errors and `help()` call it.
            method.__qualname__ = f"Tensor.{name}"
            method.__code__ = method.__code__.replace(co_qualname=method.__qualname__)
    guard_receivers(made)
    for name, method in list(vars(made).items()):
        if on_demand.METHODS.get(name) == family:
            setattr(OnDemandMethods, name, method)


def _first_of(family: str) -> str:
    return next(name for name, owner in on_demand.METHODS.items() if owner == family)


def load_methods() -> None:
    """Load every family that has methods."""
    for family in sorted(set(on_demand.METHODS.values())):
        _load(family)


for _name in on_demand.METHODS:
    setattr(OnDemandMethods, _name, _Later(_name))
