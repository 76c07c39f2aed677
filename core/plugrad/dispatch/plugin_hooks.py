"""Hooks between the plugin layer and the dispatcher: which plugin defines what, loading on
demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from plugrad.dispatch.operator import Operator


@final
class _Plugins:
    """The hooks of the plugin layer: it records who defines what, and loads plugins on demand."""

    def __init__(self) -> None:
        self.listener: Callable[[Any], None] | None = None
        self.guard: Callable[[Operator], None] | None = None
        self.maker: Callable[[str], str] | None = None
        self.loader: Callable[[str], None] | None = None
        self.namespaces: Callable[[], list[str]] | None = None


_plugins: Final = _Plugins()


def set_registration_listener(
    listener: Callable[[Any], None],
    guard: Callable[[Operator], None],
    maker: Callable[[str], str],
) -> None:
    """From now on, `listener(made)` gets every operator, module of a family, `Library` that owns a
    namespace, and handle with `remove()` before it takes effect. `guard(op)` raises if an operator
    must not be defined again. `maker(name)` returns the package that made the registration of that
    name."""
    _plugins.listener = listener
    _plugins.guard = guard
    _plugins.maker = maker


def set_operator_loader(loader: Callable[[str], None], namespaces: Callable[[], list[str]]) -> None:
    """`loader(namespace)` is called for missing operators; `namespaces()` returns the namespaces
    that it can load."""
    _plugins.loader = loader
    _plugins.namespaces = namespaces


def load_operators(namespace: str) -> None:
    """Load the plugin that has the name of a namespace, if one is installed.

    Raises:
        PluginError: it cannot be used.
    """
    if _plugins.loader is not None:
        _plugins.loader(namespace)


def loadable_namespaces() -> list[str]:
    """Namespaces that may get operators by `load_operators`."""
    return [] if _plugins.namespaces is None else _plugins.namespaces()


def check_replaceable(op: Operator) -> None:
    """DuplicateDefinitionError if an operator belongs to another plugin than the one that is being
    loaded."""
    if _plugins.guard is not None:
        _plugins.guard(op)


def maker_of(name: str) -> str:
    """The distribution or package that registered the kernel whose handle has this name."""
    found = "" if _plugins.maker is None else _plugins.maker(name)
    return found or "this program"


def note(made: Any) -> None:
    """Announce to the plugin layer what is about to be defined or registered, so it can be undone.

    This happens before the change, because an interrupt after it would leave an unrecorded
    registration.
    """
    if _plugins.listener is not None:
        _plugins.listener(made)
