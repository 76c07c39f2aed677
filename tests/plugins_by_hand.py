"""Plugins that tests register themselves, whether they are installed or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from plugrad.plugins import get_manager


@contextmanager
def registered(module: ModuleType, name: str) -> Iterator[None]:
    """Context manager: a module's hooks are those of a plugin of that name.

    They are a module's of their own. If the plugin is installed, and only disabled, a test before
    may have had its module loaded: under a configuration that did not say so.
    """
    own = ModuleType(module.__name__)
    vars(own).update(vars(module))
    manager = get_manager()
    manager.register(own, name)
    yield
    manager.unregister(name)
