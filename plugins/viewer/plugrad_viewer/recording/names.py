"""Names of modules and parameters while a recording runs, from hooks of all modules."""

from __future__ import annotations

import importlib
import importlib.util
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from plugrad_viewer.recording.format import Module


class Names:
    """The modules that were called, and the names of tensors.

    Attributes:
        modules: each module once, in the order of their first calls.
        tensors: by id, the tensor, weakly, and its name.
    """

    def __init__(self) -> None:
        self.modules: list[Module] = []
        self._indices: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other module gets the id of one
        self.tensors: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._lock = threading.Lock()

    def index(self, module: Any, outer: int) -> int:
        """The number of a module; one that is called from outside of all others names those
        within, and its parameters."""
        found = self._indices.get(id(module))
        if found is not None:
            return found
        with self._lock:  # several threads may call a module for the first time
            return self._index(module, outer)

    def _index(self, module: Any, outer: int) -> int:
        if id(module) in self._indices:
            return self._indices[id(module)]
        self._add(module, "", outer)
        numbers = {"": self._indices[id(module)]}
        prefix = ""
        if outer >= 0:  # not among the outer module's own
            prefix = f"{type(module).__name__}."
            self.modules[numbers[""]]["name"] = prefix[:-1]
        for name, inner in module.named_modules():
            if name and id(inner) not in self._indices:
                parent = numbers.get(name.rpartition(".")[0], numbers[""])
                numbers[name] = self._add(inner, prefix + name, parent)
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self.name(tensor, prefix + name)
        return self._indices[id(module)]

    def _add(self, module: Any, name: str, parent: int) -> int:
        self._kept.append(module)
        self._indices[id(module)] = len(self.modules)
        self.modules.append({"name": name, "kind": type(module).__name__, "parent": parent})
        return len(self.modules) - 1

    def name(self, tensor: Any, name: str) -> None:
        """Name a tensor, unless it has a name."""
        if self.of(tensor) == "":
            self.tensors[id(tensor)] = weakref.ref(tensor), name

    def of(self, tensor: Any) -> str:
        """The name of a tensor, or an empty string."""
        known = self.tensors.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else ""

    def find(self, tensor: Any, frame: FrameType | None) -> str:
        """`of`, or else a variable of the program that holds the tensor."""
        name = self.of(tensor)
        if name or frame is None:
            return name
        for variables in (frame.f_locals, frame.f_globals):
            for variable, value in list(variables.items()):
                if value is tensor and variable != "_":
                    self.name(tensor, variable)
                    return variable
        return ""

    def forget(self) -> None:
        """Release modules and tensors."""
        self._kept.clear()
        self._indices.clear()
        self.tensors.clear()


def hook_modules(
    before: Callable[[Any], None], after: Callable[[Any], None], step: Callable[[Any], None]
) -> list[Any]:
    """Register functions to call around every module's forward, and before every optimizer's step.

    Returns handles with `remove()`; none if `plugrad.nn` is not installed.
    """
    if importlib.util.find_spec("plugrad_nn") is None:
        return []
    hooks: Any = importlib.import_module("plugrad.nn.global_hooks")
    optimizers: Any = importlib.import_module("plugrad.optim.optimizer")

    def enter(module: Any, args: Any) -> None:
        before(module)

    def leave(module: Any, args: Any, output: Any) -> None:
        after(module)

    def start(optimizer: Any, args: Any, kwargs: Any) -> None:
        step(optimizer)

    return [
        hooks.register_module_forward_pre_hook(enter),
        hooks.register_module_forward_hook(leave, always_call=True),
        optimizers.register_optimizer_step_pre_hook(start),
    ]
