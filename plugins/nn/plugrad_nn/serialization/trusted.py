"""Pickles of files that the user trusts: with `weights_only=False` they may run any program."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from typing import Any, BinaryIO

from plugrad_nn.serialization.known_names import TENSOR_NAMES
from plugrad_nn.serialization.rebuilding import Rebuilder


class TrustedUnpickler(pickle.Unpickler):
    """Python's unpickler, for which the names of PyTorch's tensors are plugrad's.

    Args:
        file: its position is the start of the pickle.
        rebuilder: makes the tensors.
        persistent_load: the storage for an identifier.
        options: options of Python's `pickle.load`, such as ``encoding``.
    """

    def __init__(
        self,
        file: BinaryIO,
        rebuilder: Rebuilder,
        persistent_load: Callable[[Any], Any],
        **options: Any,
    ) -> None:
        super().__init__(file, **options)
        self._names = {**TENSOR_NAMES, **rebuilder.functions()}
        self._persistent_load = persistent_load

    def persistent_load(self, pid: Any) -> Any:
        """A storage; or a class, which old files have by its source, too."""
        if isinstance(pid, tuple) and pid[:1] == ("module",):
            return pid[1]
        return self._persistent_load(pid)

    def find_class(self, module: str, name: str) -> Any:
        """The object for a name; PyTorch's names give plugrad's objects."""
        known = self._names.get(f"{module}.{name}")
        if known is not None:
            return known
        if module.partition(".")[0] == "torch":
            return _in_plugrad(module, name)
        return super().find_class(module, name)


def _in_plugrad(module: str, name: str) -> Any:
    """plugrad's object for a name in PyTorch's module, or in an outer one:
    `torch.nn.modules.linear.Linear` is `plugrad.nn.modules.Linear`."""
    place = f"plugrad{module.removeprefix('torch')}"
    while place:
        try:
            found: Any = importlib.import_module(place)
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            place = place.rpartition(".")[0]
    raise pickle.UnpicklingError(
        f"load: the file names {module}.{name}, which plugrad does not have; save the state_dict() "
        "of modules instead of the modules"
    )
