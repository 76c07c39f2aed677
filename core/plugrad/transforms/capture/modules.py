"""Tracks which modules are being called during a capture, and the modules' names of their tensors.

The core has no modules: any callable with `named_modules` is one, like plugrad-nn's.
"""

from __future__ import annotations

# Interpreted: it runs while a function is captured, once for each operator.
import sys
from typing import Any

# The modules that a call of an operator is within, the outermost first: names and types.
Scope = tuple[tuple[str, str], ...]


class Modules:
    """The modules that a run has called so far.

    The outermost module is called "", and those in it have the names of `named_modules`. Others
    begin with the name of their type.

    Attributes:
        tensors: the names of parameters and buffers, by id of the tensor.
    """

    def __init__(self) -> None:
        self.tensors: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._used: set[str] = set()
        self._kept: list[Any] = []  # so that ids stay theirs

    def running(self) -> Scope:
        """Where the thread is: found on its stack, so that calls of modules cost nothing."""
        found: list[Any] = []
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_name == "__call__" and code.co_argcount:
                owner = frame.f_locals.get(code.co_varnames[0])
                if hasattr(type(owner), "named_modules"):
                    found.append(owner)
            frame = frame.f_back
        scope: list[tuple[str, str]] = []
        for module in reversed(found):
            outer = scope[-1][0] if scope else None
            scope.append((self._name_of(module, outer), type(module).__name__))
        return tuple(scope)

    def forget(self) -> None:
        """Release the modules."""
        for table in (self.tensors, self._names, self._used, self._kept):
            table.clear()

    def _name_of(self, module: Any, outer: str | None) -> str:
        known = self._names.get(id(module))
        if known is not None:
            return known
        name = "" if outer is None and "" not in self._used else self._free(module, outer)
        for inner_name, inner in module.named_modules():
            if id(inner) not in self._names:
                self._names[id(inner)] = _joined(name, inner_name)
                self._used.add(_joined(name, inner_name))
                self._kept.append(inner)
        for inner_name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self.tensors.setdefault(id(tensor), _joined(name, inner_name))
        return name

    def _free(self, module: Any, outer: str | None) -> str:
        stem = _joined(outer or "", type(module).__name__)
        name, number = stem, 1
        while name in self._used:
            number += 1
            name = f"{stem}_{number}"
        return name


def _joined(outer: str, inner: str) -> str:
    return f"{outer}.{inner}" if outer and inner else outer or inner
