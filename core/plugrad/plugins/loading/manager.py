"""Finds, loads and keeps plugins. Finding plugins reads only names; modules are imported on first
use.

A plugin that cannot be loaded stays in the list with its error, which affects only code that uses
it.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Container
from functools import partial
from types import ModuleType
from typing import Any

from plugrad.dispatch.backends.active import ActiveBackend, activate_backend, active_backends
from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.scope import Locked
from plugrad.errors import BackendNotFoundError, PluginError
from plugrad.plugins.config.current import current_config
from plugrad.plugins.kernels.backend_kernels import BackendKernels
from plugrad.plugins.kernels.choice import chosen_plugins
from plugrad.plugins.kernels.conflicts import kernel_conflicts
from plugrad.plugins.loading import messages
from plugrad.plugins.loading.at_work import circle, exclusively, is_at_work
from plugrad.plugins.loading.conflicts import Conflict, claims_of_several, conflict, settle_names
from plugrad.plugins.loading.discovery import installed_plugins, merged
from plugrad.plugins.loading.exclusive import is_deadlock
from plugrad.plugins.loading.failures import place_of
from plugrad.plugins.loading.load import FAILURES, Hooks, explained, take_down, take_up
from plugrad.plugins.loading.plugin import Plugin, in_order
from plugrad.plugins.loading.published import BACKENDS, OURS, PUBLISHED, distribution_of
from plugrad.plugins.loading.registrations import REGISTRATIONS, made_by

__all__ = ["Plugin", "PluginManager"]


def _claims_nothing_else(plugin: Plugin) -> bool:
    """Whether the plugin's claims are known without importing it: a misspelt name should not import
    JAX."""
    return plugin.name in OURS and plugin.distribution == distribution_of(plugin.name)


class PluginManager:
    """The plugins of one process, by the name of their entry points.

    They are ordered by the preferences of the configuration, then by name, then by
    distribution.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._plugins: list[Plugin] | None = None
        self._is_stale = True
        self._hooks = Hooks()
        self._kernels = BackendKernels(lambda: self.discovered().values())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_locks)

    def _renew_locks(self) -> None:
        """In the child of a fork: the thread that held a lock does not exist there."""
        self._lock = threading.RLock()
        self._hooks.renew_lock()
        self._kernels.renew_lock()

    @property
    def hook(self) -> Any:
        """Calls a hook on every plugin that is loaded: ``manager.hook.plugrad_cli(app=app)``."""
        return self._hooks.pluggy.hook

    def discovered(self) -> dict[str, Plugin]:
        """Every installed plugin by name; scans the installed distributions once, imports none.

        If several plugins have one name, the unused ones are called ``foo of plugrad-foo 1``.

        Raises:
            ConfigError: the configuration, which disables and prefers, cannot be used.
        """
        with Locked(self._lock):
            plugins = self._judged()
            names = [plugin.name for plugin in plugins]
            by_name: dict[str, Plugin] = {}
            for plugin in plugins:
                alone = names.count(plugin.name) == 1
                used = plugin.set_aside is None and not plugin.disabled
                # The first of them has the name if none has a right to it.
                if alone or used or (plugin.name not in by_name and not self._is_used(plugin.name)):
                    by_name[plugin.name] = plugin
                else:
                    by_name[f"{plugin.name} of {plugin.origin}"] = plugin
            return by_name

    def _is_used(self, name: str) -> bool:
        return any(
            plugin.name == name and plugin.set_aside is None and not plugin.disabled
            for plugin in self._plugins or ()
        )

    def _judged(self) -> list[Plugin]:
        """All plugins, as the current configuration treats them."""
        if self._is_stale:
            self._plugins = merged(self._plugins or [], installed_plugins())
            self._is_stale = False
        assert self._plugins is not None
        config = current_config()
        setting = config.all_settings("disable")[0]
        for plugin in self._plugins:
            banned = any(plugin.is_called(name) for name in config.names("disable"))
            plugin.disabled = setting.source if banned else ""
        settle_names(self._plugins, config.names("prefer"))
        return self._plugins

    def _ordered(self) -> list[Plugin]:
        return in_order(self.discovered(), current_config().names("prefer"))

    def _others(self, plugin: Plugin) -> list[Plugin]:
        return [other for other in self._plugins or () if other is not plugin]

    def rescan(self) -> None:
        """Look again for installed distributions at the next use, for example after a pip install.

        Loaded plugins do not change; `reload` loads a new version. Uninstalled plugins are
        unloaded.
        """
        importlib.invalidate_caches()
        self._is_stale = True
        loaded = [one for one in self._plugins or () if one.module is not None]
        if loaded:
            found = {plugin.identity for plugin in installed_plugins()}
            for plugin in loaded:
                if plugin.by_hand is None and plugin.identity not in found:
                    self._unload(plugin)

    def register(self, module: object, name: str) -> Plugin:
        """Add a plugin that no distribution announces, such as one under development.

        Raises:
            ValueError: a plugin of this name exists already.
            PluginError: its hooks are not usable; nothing of it stays registered.
        """
        if name in self.discovered():
            raise ValueError(f"a plugin named {name!r} is registered already")
        target = getattr(module, "__name__", type(module).__name__)
        plugin = Plugin(name, target, by_hand=module)
        with Locked(self._lock):
            assert self._plugins is not None
            self._plugins.append(plugin)
        try:
            self._load(plugin)
        except BaseException:
            self._forget(plugin)
            raise
        if plugin.error is not None:
            self._forget(plugin)
            raise PluginError(f"plugin {name!r}: {plugin.problem}") from plugin.error
        return plugin

    def _forget(self, plugin: Plugin) -> None:
        with Locked(self._lock):
            assert self._plugins is not None
            self._plugins.remove(plugin)

    def unregister(self, name: str) -> None:
        """Unload and remove a plugin that `register` added."""
        plugin = self._named(name)
        self.unload(name)
        self._forget(plugin)

    def load(self, name: str) -> Plugin:
        """Import a plugin, unless this was tried before; if it failed, its `error` says why.

        Raises:
            PluginError: no plugin of this name is installed.
        """
        plugin = self._named(name)
        plugin.unloaded = False
        self._load(plugin)
        names, plugin.was_active = plugin.was_active, ()
        taken = {active.name for active in active_backends()}
        for name in names:
            if plugin.is_usable and name in plugin.backends and name not in taken:
                activate_backend(plugin.backends[name])  # there may be tensors of it
        return plugin

    def unload(self, name: str) -> None:
        """Undo the loading of a plugin: its backends are deactivated, its operators, kernels,
        namespaces and modules removed. It stays unloaded until `load` or `reload`.

        Existing objects keep working if they do not need the plugin: recorded graphs can run
        backward, but calls on tensors of its backends raise `OperatorNotFoundError`. After `load`
        or `reload`, active backends are active again; their existing tensors work if the plugin
        still supports the arrays in them.

        Raises:
            PluginError: no plugin of this name is installed.
        """
        self._unload(self._named(name))

    def _unload(self, plugin: Plugin) -> None:
        done: list[bool] = []
        while not done and exclusively(self, plugin, partial(self._unload_now, plugin, done)):
            pass

    def reload(self, name: str) -> Plugin:
        """Unload a plugin, and import its modules again.

        Raises:
            PluginError: no plugin of this name is installed, or it cannot be loaded.
        """
        plugin = self._named(name)
        self.unload(name)
        self.rescan()
        if isinstance(plugin.by_hand, ModuleType) and plugin.by_hand.__spec__ is not None:
            sys.modules.setdefault(plugin.by_hand.__name__, plugin.by_hand)
            try:
                with made_by(plugin):
                    plugin.by_hand = importlib.reload(plugin.by_hand)
            except BaseException as raised:
                exclusively(self, plugin, partial(self._clear, plugin))
                if not isinstance(raised, FAILURES):
                    raise
                said = f"{type(raised).__name__}: {raised}"
                raise PluginError(f"plugin {name!r} ({plugin.origin}): {said}") from raised
        self.load(name)
        if plugin.problem:
            error = plugin.set_aside or plugin.error
            raise PluginError(f"plugin {name!r} ({plugin.origin}): {plugin.problem}") from error
        return plugin

    def _named(self, name: str) -> Plugin:
        plugin = self.discovered().get(name)
        if plugin is None:
            raise PluginError(
                f"no plugin named {name!r} is installed; installed: "
                f"{', '.join(sorted(self.discovered())) or 'none'}"
            )
        return plugin

    def _load(self, plugin: Plugin) -> Plugin:
        """Import and take up a plugin, unless it was done, or must not be."""
        if plugin.is_going and not is_at_work(plugin):
            # Another thread unloads it, or unloading was interrupted.
            exclusively(self, plugin, partial(self._clear, plugin))
        if not plugin.is_to_load():
            return plugin
        self._load_preferred(plugin)
        while plugin.is_to_load():
            # The import has the import system's own lock; its code may use plugrad in any thread.
            with made_by(plugin):
                try:
                    module = plugin.by_hand or importlib.import_module(plugin.target)
                except FAILURES as error:
                    if is_deadlock(error):
                        raise circle(plugin) from error
                    work = partial(self._fail, plugin, None, error)
                except BaseException:
                    exclusively(self, plugin, partial(self._clear, plugin))
                    raise
                else:
                    if getattr(getattr(module, "__spec__", None), "_initializing", False):
                        return plugin  # the module's own code called it: its import ends first
                    work = partial(self._take_up, plugin, module)
            try:
                taken_up = exclusively(self, plugin, work)
            except BaseException:
                # An interrupt before the work began: what the import registered is still there.
                exclusively(self, plugin, partial(self._clear, plugin))
                raise
            if not taken_up:
                return plugin
        self._load_additions(plugin)
        return plugin

    def _take_up(self, plugin: Plugin, module: object) -> None:
        if plugin.is_settled or plugin.unloaded:
            return
        if plugin.by_hand is None and sys.modules.get(plugin.target) is not module:
            return  # it was unloaded since it was imported
        try:
            take_up(plugin, module, self._hooks)
        except FAILURES as error:
            self._fail(plugin, module, error)
            return
        except BaseException:
            take_down(plugin, module, self._hooks, self._others(plugin))
            raise
        if plugin.kernels or plugin.variants:
            try:
                self.refresh_kernels()
            except Exception:
                raise  # of a warning, such as that a kernel is left out
            except BaseException:
                self._retire(plugin)
                raise

    def _clear(self, plugin: Plugin) -> None:
        """Undo what the loading of a plugin did that was interrupted."""
        if plugin.is_going or not plugin.is_settled:
            self._retire(plugin)

    def _retire(self, plugin: Plugin) -> None:
        """Take a plugin down that may have been in use."""
        take_down(plugin, plugin.module, self._hooks, self._others(plugin))
        self.refresh_kernels()

    def _fail(self, plugin: Plugin, module: object | None, error: BaseException) -> None:
        """Keep only the error of a plugin."""
        if plugin.is_settled:
            return
        others = self._others(plugin)
        place = place_of(error, plugin, module)
        error = explained(error, plugin, others)
        take_down(plugin, module, self._hooks, others)
        plugin.error, plugin.place = error, place

    def _unload_now(self, plugin: Plugin, done: list[bool]) -> None:
        done.append(True)
        plugin.was_active = tuple(
            active.name
            for active in active_backends()
            if plugin.backends.get(active.name) is active.backend
        )
        plugin.unloaded = True
        self._retire(plugin)

    def _load_preferred(self, plugin: Plugin) -> None:
        """Load preferred plugins first, because the first of two definitions is kept."""
        preferred = current_config().names("prefer")
        if not preferred or any(plugin.is_called(name) for name in preferred):
            return
        for other in self._ordered():
            if other is not plugin and any(other.is_called(name) for name in preferred):
                self._load(other)

    def _load_additions(self, plugin: Plugin) -> None:
        """Load the plugins that bring kernels for this one's operators."""
        adding = [other for other in self._ordered() if other.adds_to and other is not plugin]
        if adding and plugin.is_usable:
            namespaces = self.operator_namespaces(plugin)
            for other in adding:
                if not namespaces.isdisjoint(other.adds_to):
                    self._load(other)

    def operator_namespaces(self, plugin: Plugin) -> set[str]:
        """The namespaces in which a loaded plugin has defined operators."""
        return {name.partition("::")[0] for name in self.operators(plugin)}

    def operators(self, plugin: Plugin) -> list[str]:
        """Qualified names of the operators that a loaded plugin has defined."""
        others = self._others(plugin)
        shared = any(other.package == plugin.package for other in others)
        made = REGISTRATIONS.of(
            plugin, "" if shared else plugin.package, [other.package for other in others]
        )
        return [one.made.qualified_name for one in made if hasattr(one.made, "qualified_name")]

    def maker_of(self, kernel: str) -> str:
        """The distribution of the plugin that registered a kernel, else the package."""
        for owner, package in REGISTRATIONS.makers("kernel", kernel)[::-1]:
            for plugin in self._plugins or ():
                if plugin is owner or (owner is None and plugin.package == package):
                    return plugin.origin
            return package
        return ""

    def load_all(self) -> list[Plugin]:
        """Load every installed plugin; those that fail are among the result, with their errors."""
        return [self._load(plugin) for plugin in self._ordered()]

    def backend(self, name: str, wanted_by: str = "") -> Backend:
        """The backend for a device type; tries preferred plugins, then the one of this name, then
        all others.

        Raises:
            PluginError: the plugin that should provide it cannot be used.
            PluginConflictError: several plugins provide it.
            BackendNotFoundError: no installed plugin provides it; says what to pip install.
        """
        what = f"backend {name!r}{messages.chosen_by(wanted_by)}"
        # Not the first plugin that happens to stand in the list: it may be slow to import.
        namesake = BACKENDS.get(name, name)
        plugin = self._provider(namesake, name, what, lambda one: one.backends)
        if plugin is None:
            installed = self.backends()
            raise BackendNotFoundError(
                messages.missing_backend(name, wanted_by, installed, self.discovered().values())
            )
        self._kernels.check_key(plugin.backends[name], plugin, self._usable())
        return plugin.backends[name]

    def namespace(self, name: str) -> str | None:
        """What a plugin claims as an attribute of plugrad: ``module`` or ``module:name``, or None.

        Raises:
            PluginError: the plugin that should claim it cannot be used.
            PluginConflictError: several plugins claim it.
        """
        # Not the first plugin that happens to stand in the list: it may be slow to import.
        namesake = PUBLISHED.get(name, name)
        plugin = self._provider(
            namesake, name, f"plugrad.{name}", lambda one: one.namespaces, _claims_nothing_else
        )
        return None if plugin is None else plugin.namespaces[name]

    def _provider(
        self,
        namesake: str,
        name: str,
        what: str,
        provided: Callable[[Plugin], Container[str]],
        spared: Callable[[Plugin], bool] = lambda one: False,
    ) -> Plugin | None:
        """The plugin that provides a name, or None.

        Plugins in `spared` are not loaded for a name that they do not claim.
        """
        plugins = self._ordered()
        preferred = current_config().names("prefer")
        first = [plugin for plugin in plugins if any(plugin.is_called(one) for one in preferred)]
        first += [plugin for plugin in plugins if plugin.name == namesake]
        for plugin in first:
            self._load(plugin)
            if plugin.is_usable and name in provided(plugin):
                return plugin
            if plugin.name == namesake and plugin.problem and not plugin.disabled:
                error = plugin.set_aside or plugin.error
                kind = PluginError if plugin.set_aside is None else type(plugin.set_aside)
                if not any(other.is_usable for other in first if other.name == namesake):
                    raise kind(messages.unusable(what, plugin)) from error
        claiming = [
            plugin
            for plugin in plugins
            if not spared(plugin) and self._load(plugin).is_usable and name in provided(plugin)
        ]
        if len(claiming) > 1:
            raise conflict(what, claiming)
        return claiming[0] if claiming else None

    def load_operators(self, namespace: str) -> None:
        """Load the plugins that bring operators, or kernels, of a namespace.

        Raises:
            PluginError: the plugin of that name cannot be used.
        """
        for plugin in self._ordered():
            if plugin.name.replace("-", "_") == namespace or namespace in plugin.adds_to:
                self._load(plugin)
                if plugin.problem and not plugin.disabled and namespace not in plugin.adds_to:
                    error = plugin.set_aside or plugin.error
                    what = f"the namespace of operators {namespace!r}"
                    raise PluginError(messages.unusable(what, plugin)) from error

    def loadable_namespaces(self) -> list[str]:
        """Names of plugins that are not loaded, and may bring operators when they are."""
        known = ("nn", "distributions", "as_torch", "onnx", "viewer", *messages.PUBLISHED_BACKENDS)
        names = [
            plugin.name.replace("-", "_")
            for plugin in self._ordered()
            if plugin.status == "not loaded" and plugin.name not in known
        ]
        return [name for name in names if name.isidentifier()]

    def backends(self) -> dict[str, Plugin]:
        """Every backend that is installed and usable, with its plugin; loads all plugins."""
        plugins = [plugin for plugin in self.load_all() if plugin.is_usable]
        found: dict[str, Plugin] = {}
        for plugin in plugins:
            for name in plugin.backends:
                if name not in found or plugin.name == name:
                    found[name] = plugin
        return found

    def extend_cli(self, app: Any, name: str = "") -> None:
        """Let plugins add their commands; one that fails is recorded and left out.

        Args:
            name: only the plugin of this name; by default all that this project does not publish;
                what its own plugins add is known.
        """
        for plugin in self._ordered():
            wanted = plugin.name == name if name else not _claims_nothing_else(plugin)
            if wanted and self._has_hook(plugin, "plugrad_cli") and self._load(plugin).is_usable:
                try:
                    self._hooks.ask(plugin.module, "plugrad_cli", app=app)
                except FAILURES as error:
                    exclusively(self, plugin, partial(self._fail_late, plugin, error))

    def _has_hook(self, plugin: Plugin, hook: str) -> bool:
        """Whether a plugin's module implements a hook; imports it, but registers nothing."""
        if not plugin.is_to_load():
            return plugin.is_usable
        try:
            with made_by(plugin):
                module = plugin.by_hand or importlib.import_module(plugin.target)
        except FAILURES:
            return True  # loading it keeps the error
        return self._hooks.implements(module, hook)

    def _fail_late(self, plugin: Plugin, error: BaseException) -> None:
        place = place_of(error, plugin, plugin.module)
        self._retire(plugin)
        plugin.error, plugin.place = error, place

    def _usable(self) -> list[Plugin]:
        return [plugin for plugin in self._ordered() if plugin.is_usable]

    def complete(self, active: ActiveBackend) -> None:
        """Give a backend the kernels that plugins provide for it."""
        self._kernels.load_additions(self._ordered(), self._load)
        self._follow_choice(active)

    def configuration_changed(self) -> None:
        """Update the kernels of active backends to the current configuration.

        Raises:
            ConfigError: it chooses a kernel that does not exist.
        """
        if self._plugins is None:
            return
        for active in active_backends():
            self._follow_choice(active)

    def _follow_choice(self, active: ActiveBackend) -> None:
        for plugin in chosen_plugins(active.name, self._ordered()):
            self._load(plugin)
        preferred = current_config().names("prefer")
        self._kernels.refresh(active, self._usable(), preferred, strict=True)

    def refresh_kernels(self) -> None:
        """Give active backends what plugins provide for them now."""
        if self._plugins is None:
            return
        for active in active_backends():
            self._kernels.refresh(active, self._usable(), current_config().names("prefer"))

    def conflicts(self) -> list[Conflict]:
        """What several plugins claim, and whether it is settled, of kernels those on active
        backends; loads all plugins."""
        plugins = [plugin for plugin in self.load_all() if plugin.is_usable]
        preferred = current_config().names("prefer")
        found = claims_of_several(plugins, preferred)
        for active in active_backends():
            found += kernel_conflicts(active, plugins, preferred)
        return found
