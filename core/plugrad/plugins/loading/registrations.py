"""Records which plugin defined or registered what, so that it can be listed and undone.

Definitions made while a plugin loads belong to that plugin. Definitions that another package's code
makes meanwhile belong to that package's plugin.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from types import FrameType, ModuleType
from typing import Any, Final

from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.operator import Operator, find_operator, retract
from plugrad.dispatch.registration import RegistrationHandle
from plugrad.dispatch.scope import Locked, Scope, Swapped
from plugrad.errors import DuplicateDefinitionError
from plugrad.ops.namespace import TAGS

# Frames of the core and of generated code do not show the caller.
_CORE: Final = "plugrad"
_GENERATED: Final = "<plugrad.codegen: "
# How many registrations may be under way at a time.
_NEWEST: Final = 100


class _Registration:
    """One definition or registration: its plugin, and the package of the code that made it.

    It is an operator, the module of a family, a library that owns its namespace, or a handle:
    something with `remove()` and `is_removed`.
    """

    __slots__ = ("made", "owner", "package")

    def __init__(self, made: Any, owner: object | None, package: str) -> None:
        self.made = made
        self.owner = owner
        self.package = package

    @property
    def is_undone(self) -> bool:
        made = self.made
        if isinstance(made, Operator):
            return find_operator(made.qualified_name) is not made
        if isinstance(made, ModuleType):
            from plugrad.codegen.load import is_loaded  # imported by now: it made the module

            return not is_loaded(made)
        if hasattr(made, "owns_namespace"):
            return not made.owns_namespace
        return bool(made.is_removed)

    def is_called(self, what: str, name: str) -> bool:
        made = self.made
        if isinstance(made, Operator):
            return what == "operator" and made.qualified_name == name
        if isinstance(made, RegistrationHandle):
            return what == "kernel" and made.name == name
        return what == "namespace" and getattr(made, "ns", None) == name

    def undo(self) -> None:
        made = self.made
        if isinstance(made, Operator):
            retract(made)
            TAGS.pop(made.qualified_name, None)
            _forget_function(made)
        elif isinstance(made, ModuleType):
            from plugrad.codegen.load import unload

            unload(made)
        elif hasattr(made, "owns_namespace"):
            made._destroy()
        else:
            made.remove()


class _Local(threading.local):
    """The plugin that the thread loads just now."""

    owner: object | None = None


_local: Final = _Local()
_lock: Final = threading.RLock()
hold_while_forking(_lock)


class Registrations:
    """What was made since the process' plugins are kept."""

    def __init__(self) -> None:
        self._made: list[_Registration] = []
        self._prune_at = 1000

    def note(self, made: Any) -> None:
        """Record something that is about to be made."""
        package = _calling_package()
        owner = _local.owner
        if package == _CORE and owner is None:
            return
        with Locked(_lock):
            if len(self._made) >= self._prune_at:
                # The newest are about to be made by other threads.
                old, new = self._made[:-_NEWEST], self._made[-_NEWEST:]
                self._made = [one for one in old if not one.is_undone] + new
                self._prune_at = 2 * len(self._made) + 1000
            self._made.append(_Registration(made, owner, package))

    def of(self, owner: object, package: str, foreign: Iterable[str] = ()) -> list[_Registration]:
        """The registrations of a plugin, in the order in which they were made.

        Args:
            package: the top-level package of its module, empty if others share it.
            foreign: packages of other plugins, whose code may have run while it was loaded.
        """
        others = set(foreign) - {package}
        with Locked(_lock):
            return [
                one
                for one in self._made
                if not one.is_undone
                and (
                    (one.owner is owner and one.package not in others)
                    or (bool(package) and one.package == package)
                )
            ]

    def undo(self, which: Iterable[_Registration]) -> None:
        """Take back what was made, the newest first."""
        undone = list(which)
        for one in reversed(undone):
            one.undo()
        with Locked(_lock):
            self._made = [one for one in self._made if one not in undone]

    def check_replaceable(self, op: Operator) -> None:
        """DuplicateDefinitionError if an operator is another plugin's than the one being loaded."""
        owner = _local.owner
        for other, _ in self.makers("operator", op.qualified_name):
            if owner is not None and other is not None and other is not owner:
                raise DuplicateDefinitionError(
                    f"the operator {op.qualified_name} is defined already, by another plugin",
                    "operator",
                    op.qualified_name,
                )

    def makers(self, what: str, name: str) -> list[tuple[object | None, str]]:
        """Owner and package of the existing registrations with this name."""
        with Locked(_lock):
            return [
                (one.owner, one.package)
                for one in self._made
                if one.is_called(what, name) and not one.is_undone
            ]


REGISTRATIONS: Final = Registrations()


def made_by(owner: object) -> Scope:
    """Context manager: what the calling thread defines and registers belongs to `owner`."""
    return Swapped(_local, "owner", owner)


def _calling_package() -> str:
    """The top-level package of the innermost code that is not the core's; the core's otherwise."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        # A plugin imported by the core has importlib and the core around it.
        if package in ("importlib", "_frozen_importlib", "pluggy"):
            return _CORE
        if package != _CORE and not frame.f_code.co_filename.startswith(_GENERATED):
            return package
        frame = frame.f_back
    return _CORE


def _forget_function(op: Operator) -> None:
    """A public function with overloads is registered for overrides."""
    from plugrad.tensor.calls.overridable import OVERRIDES

    OVERRIDES.functions.pop((op.namespace, op.name), None)
