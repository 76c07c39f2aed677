"""Makes sure that only one thread at a time loads or unloads a plugin."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from plugrad.errors import PluginError
from plugrad.plugins.loading.exclusive import Circle, run_exclusively
from plugrad.plugins.loading.plugin import Plugin


class _Local(threading.local):
    """The plugins that the thread is loading or unloading just now."""

    plugins: tuple[Plugin, ...] = ()


_at_work: Final = _Local()


def exclusively(manager: object, plugin: Plugin, work: Callable[[], object]) -> bool:
    """Do the work, or wait for another thread that loads or unloads the plugin.

    Returns False if the calling thread is within such work, or must not wait for it. As in a
    circular import, it must continue with what is loaded so far.
    """
    if is_at_work(plugin):
        return False
    _at_work.plugins = (*_at_work.plugins, plugin)
    try:
        run_exclusively(f"plugin {id(manager)} {plugin.name} of {plugin.origin}", work)
    except Circle:
        return False
    finally:
        _at_work.plugins = _at_work.plugins[:-1]
    return True


def is_at_work(plugin: Plugin) -> bool:
    """Whether the calling thread is within such work."""
    return plugin in _at_work.plugins


def circle(plugin: Plugin) -> PluginError:
    """The error of a thread that cannot wait for a plugin."""
    return PluginError(
        f"plugin {plugin.name!r} is being loaded by another thread, which waits for a module that "
        "this thread imports: use what the plugin provides inside functions, not at import"
    )
