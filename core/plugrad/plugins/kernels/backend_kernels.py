"""Gives active backends the kernels that plugins provide for them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Final

from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.kernel_sources import Brought
from plugrad.dispatch.backends.kernel_table import kernel_table
from plugrad.dispatch.keys import backend_number, dispatch_key
from plugrad.dispatch.scope import Locked
from plugrad.errors import PluginWarning
from plugrad.plugins.kernels.choice import by_owner, chosen_owners
from plugrad.plugins.kernels.sources import resolved
from plugrad.plugins.kernels.variants import make_variants, usable_features
from plugrad.plugins.loading.conflicts import ConflictingKernel, conflict
from plugrad.plugins.loading.load import FAILURES
from plugrad.plugins.loading.plugin import Plugin, preference
from plugrad.plugins.loading.registrations import made_by

# The namespace of the core's operators: what adds to it is loaded with the first backend.
_CORE: Final = "plugrad"


class BackendKernels:
    """Which plugins' kernels each active backend uses."""

    def __init__(self, installed: Callable[[], Iterable[Plugin]]) -> None:
        self._lock = threading.RLock()
        self._installed = installed

    def renew_lock(self) -> None:
        """In the child of a fork: the thread that held the lock does not exist."""
        self._lock = threading.RLock()

    def load_additions(self, plugins: list[Plugin], load: Callable[[Plugin], Plugin]) -> None:
        """Load the plugins that bring kernels for the core's operators."""
        for plugin in plugins:
            if _CORE in plugin.adds_to:
                load(plugin)

    def refresh(
        self,
        active: ActiveBackend,
        plugins: list[Plugin],
        preferred: tuple[str, ...],
        strict: bool = False,
    ) -> None:
        """Give a backend exactly what the plugins that are usable now bring for it.

        Args:
            strict: whether a choice of the configuration that cannot be followed raises.

        Raises:
            ConfigError: such a choice.
        """
        claiming = [plugin for plugin in plugins if active.name in plugin.kernels]
        varying = [plugin for plugin in plugins if active.name in plugin.variants]
        # This imports their modules, so it is without the lock.
        told = [text for plugin in claiming for text in _make_table(plugin, active)]
        features = usable_features(active, strict)
        told += [text for plugin in varying for text in make_variants(plugin, active, features)]
        with Locked(self._lock):
            owners = by_owner(plugins)
            for owner, plugin in owners.items():
                if plugin.backends.get(active.name) is active.backend:
                    active.sources.origin = owner
            brought = [
                Brought(
                    owner,
                    plugin.kernel_tables.get(active.name, {}),
                    preference(plugin, preferred) < len(preferred),
                    plugin.variant_lists.get(active.name, ()),
                )
                for owner, plugin in sorted(
                    owners.items(), key=lambda item: preference(item[1], preferred)
                )
                if active.name in plugin.kernel_tables or active.name in plugin.variant_lists
            ]

            def conflicting(name: str, rivals: list[str]) -> Any:
                what = f"a kernel for {name!r} on backend {active.name!r}"
                return ConflictingKernel(conflict(what, [owners[rival] for rival in rivals]))

            chosen = chosen_owners(active, plugins, self._installed, strict)
            active.settle_kernels(brought, chosen, conflicting, features)
        for text in told:  # now, since a warning may be an error
            warnings.warn(text, PluginWarning, stacklevel=2)

    def check_key(self, backend: Backend, plugin: Plugin, plugins: list[Plugin]) -> None:
        """PluginConflictError if the backend's dispatch key is another plugin's."""
        wanted = key_name(backend)
        for other in plugins:
            for rival in other.backends.values():
                if rival.name != backend.name and key_name(rival) == wanted and _has_key(rival):
                    raise conflict(f"the dispatch key {wanted!r}", [other, plugin])


def key_name(backend: Backend) -> str:
    """The name of a backend's dispatch key."""
    return backend.key_name or backend.name.capitalize()


def _has_key(backend: Backend) -> bool:
    """Whether the backend was the first to register its key."""
    number = backend_number(backend.name)
    return number >= 0 and dispatch_key(key_name(backend)).backend == number


def _make_table(plugin: Plugin, active: ActiveBackend) -> list[str]:
    """Make a plugin's kernels for a backend one table; an error is kept.

    Kernels for operators that do not exist are left out. Returns the warnings to give, once.
    """
    name = active.name
    if name in plugin.kernel_tables or name in plugin.kernel_errors:
        return []
    table: dict[str, Any] = {}
    try:
        with made_by(plugin):
            for source in plugin.kernels[name]:
                table.update(kernel_table(resolved(source)))
    except FAILURES as error:
        plugin.kernel_errors[name] = error
        return [
            f"the kernels of {plugin.origin} for backend {name!r} cannot be used: "
            f"{type(error).__name__}: {error}"
        ]
    told: list[str] = []
    for unknown, what in active.unknown_names(table).items():
        del table[unknown]
        text = f"{plugin.origin} has, for backend {name!r}, {what}"
        plugin.unknown_kernels.setdefault(name, []).append(text)
        told.append(f"{text} (it is left out)")
    plugin.kernel_tables[name] = table
    return told
