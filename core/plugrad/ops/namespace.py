"""`plugrad.ops.<namespace>.<name>.<overload>`: operators as attributes, found when asked for."""

from __future__ import annotations

# Interpreted: it runs seldom, and modules have a __getattr__.
from typing import Any

from plugrad.dispatch.operator import Operator, all_operators
from plugrad.tensor.overloads import call_overload


class OpOverloadPacket:
    """All overloads of one operator; calling it picks the one that the arguments fit."""

    def __init__(self, namespace: str, name: str, overloads: list[Operator]) -> None:
        self.namespace = namespace
        self.name = name
        self._overloads = overloads
        self.__doc__ = "\n\n".join(op.doc or op.schema_text for op in overloads)

    def overloads(self) -> list[str]:
        """Names of the overloads; that of an operator without one is ``default``."""
        return [op.overload or "default" for op in self._overloads]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(self._overloads) == 1:
            return self._overloads[0](*args, **kwargs)
        choices = tuple((op, op) for op in self._overloads)
        return call_overload(f"{self.namespace}::{self.name}", choices, args, kwargs)

    def __getattr__(self, overload: str) -> Operator:
        for op in self._overloads:
            if (op.overload or "default") == overload:
                return op
        raise AttributeError(
            f"the operator {self.namespace}::{self.name} has no overload {overload!r}; it has: "
            f"{', '.join(self.overloads())}"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.name}')>"


class OpNamespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = [op for op in all_operators() if op.namespace == self._name and op.name == name]
        if not found:
            raise AttributeError(f"there is no operator {self._name}::{name}")
        return OpOverloadPacket(self._name, name, found)

    def __dir__(self) -> list[str]:
        names = {op.name for op in all_operators() if op.namespace == self._name}
        return [*super().__dir__(), *sorted(names)]

    def __repr__(self) -> str:
        return f"<plugrad.ops namespace {self._name!r}>"


def find_namespace(name: str) -> OpNamespace:
    """The namespace's operators; AttributeError if nobody defined any there."""
    if not any(op.namespace == name for op in all_operators()):
        known = sorted({op.namespace for op in all_operators()})
        raise AttributeError(
            f"no operators are defined in the namespace {name!r}; there are: {', '.join(known)}"
        )
    return OpNamespace(name)
