"""Plugins that tests register themselves, whether they are installed or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from plugrad.plugins import get_manager


@contextmanager
def registered(module: ModuleType, name: str) -> Iterator[None]:
    """Context manager: registers a module's hooks as a plugin of that name.

    The hooks are copied to a new module. If the plugin is installed but disabled, an earlier test
    may have loaded its module under another configuration.
    """
    own = ModuleType(module.__name__)
    vars(own).update(vars(module))
    manager = get_manager()
    manager.register(own, name)
    yield
    manager.unregister(name)
