"""The plugin manager of the process, which is created on first use."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from plugrad.dispatch.first_use import InFirstUse
from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.scope import Locked

if TYPE_CHECKING:
    from plugrad.plugins.loading.manager import PluginManager

_lock: Final = threading.Lock()
hold_while_forking(_lock)
_managers: Final[list[PluginManager]] = []


def get_manager() -> PluginManager:
    """The process' plugin manager.

    >>> from plugrad.plugins import get_manager
    >>> "cpu" in get_manager().discovered()
    True
    """
    if not _managers:
        # It brings pluggy and the metadata of distributions, which most imports do without.
        from plugrad.plugins.loading.manager import PluginManager

        with InFirstUse(), Locked(_lock):
            if not _managers:
                _managers.append(PluginManager())
    return _managers[0]
