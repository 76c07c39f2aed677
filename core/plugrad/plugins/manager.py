"""Finds, loads and keeps plugins. Finding reads only names; a module is imported when it is needed.

A plugin that cannot be loaded stays in the list with its error. It breaks nothing until what it
should have provided is asked for.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pluggy

from plugrad.dispatch.api_version import check_api_version
from plugrad.dispatch.backend import Backend
from plugrad.errors import BackendNotFoundError, PluginError
from plugrad.plugins import hookspecs
from plugrad.plugins.namespaces import PUBLISHED

GROUP: Final = "plugrad"

# Backends that this project publishes.
_PUBLISHED_BACKENDS: Final = ("cpu", "cuda", "jax")


@dataclass(eq=False)
class Plugin:
    """An installed plugin: where it comes from, and what became of loading it.

    Attributes:
        name: of its entry point; by convention that of the backend or namespace it provides.
        target: the module that implements the hooks.
        distribution: what to pip install, empty for a plugin registered by hand.
        version: of the distribution.
        module: the imported module, once it is loaded.
        error: why it cannot be used.
    """

    name: str
    target: str
    distribution: str = ""
    version: str = ""
    module: object | None = None
    error: Exception | None = None
    backends: dict[str, Backend] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    libraries: list[object] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def status(self) -> str:
        if self.error is not None:
            return "failed"
        return "not loaded" if self.module is None else "loaded"

    @property
    def origin(self) -> str:
        """Distribution and version, as pip prints them."""
        return f"{self.distribution} {self.version}".strip() or self.target

    @property
    def problem(self) -> str:
        """The error in one line, empty if there is none."""
        if self.error is None:
            return ""
        return f"{type(self.error).__name__}: {self.error}"


class PluginManager:
    """The plugins of one process, by the name of their entry points."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._plugins: dict[str, Plugin] | None = None
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._observes_backward = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        """In the child of a fork: whoever held the lock is not there."""
        self._lock = threading.RLock()

    @property
    def hook(self) -> Any:
        """Calls a hook on every plugin that is loaded: ``manager.hook.plugrad_cli(app=app)``."""
        return self._pluggy.hook

    def discovered(self) -> dict[str, Plugin]:
        """Every installed plugin by name; scans the installed distributions once, imports none."""
        with self._lock:
            return dict(self._scanned())

    def register(self, module: object, name: str) -> Plugin:
        """Add a plugin that no distribution announces, such as one under development.

        Raises:
            ValueError: a plugin of this name is there already.
            PluginError: its hooks are not usable.
        """
        if name in self.discovered():
            raise ValueError(f"a plugin named {name!r} is there already")
        plugin = Plugin(name, getattr(module, "__name__", type(module).__name__))
        self._adopt(plugin, module)
        if plugin.error is not None:
            raise PluginError(f"plugin {name!r}: {plugin.problem}") from plugin.error
        with self._lock:
            self._scanned()[name] = plugin
        return plugin

    def unregister(self, name: str) -> None:
        """Take out a plugin that `register` added; a backend of it that is active stays active."""
        with self._lock:
            plugin = self._scanned().pop(name)
            self._pluggy.unregister(plugin.module)

    def load(self, name: str) -> Plugin:
        """Import a plugin, unless that was done or tried before; its `error` says how it went.

        Raises:
            PluginError: no plugin of this name is installed.
        """
        plugin = self.discovered().get(name)
        if plugin is None:
            raise PluginError(
                f"no plugin named {name!r} is installed; installed: "
                f"{', '.join(sorted(self.discovered())) or 'none'}"
            )
        if plugin.module is None and plugin.error is None:
            # Not under the lock: the module may itself use plugrad, even from other threads.
            try:
                module: object = importlib.import_module(plugin.target)
            except Exception as error:
                plugin.error = error
            else:
                self._adopt(plugin, module)
        return plugin

    def load_all(self) -> list[Plugin]:
        """Load every installed plugin; those that fail are among the result, with their errors."""
        return [self.load(name) for name in self.discovered()]

    def backend(self, name: str, wanted_by: str = "") -> Backend:
        """The backend for a device type; asks the plugin of that name first, then all others.

        Raises:
            PluginError: the plugin that should provide it cannot be used.
            BackendNotFoundError: no installed plugin provides it; says what to pip install.
        """
        for plugin in self._in_order(name):
            if name in plugin.backends:
                return plugin.backends[name]
            if plugin.name == name and plugin.error is not None:
                raise PluginError(
                    f"backend {name!r}{_wanted(wanted_by)} is provided by {plugin.origin}, which "
                    f"cannot be used: {plugin.problem}\nRun `plugrad doctor` for details."
                ) from plugin.error
        raise BackendNotFoundError(self._missing_backend(name, wanted_by))

    def namespace(self, name: str) -> str | None:
        """What a plugin claims as an attribute of plugrad: ``module`` or ``module:name``, or None.

        Raises:
            PluginError: the plugin that should claim it cannot be used.
        """
        # Not the first plugin that happens to stand in the list: it may be slow to import.
        provider = PUBLISHED.get(name, name)
        for plugin in self._in_order(provider):
            if name in plugin.namespaces:
                return plugin.namespaces[name]
            if plugin.name == provider and plugin.error is not None:
                raise PluginError(
                    f"plugrad.{name} is provided by {plugin.origin}, which cannot be used: "
                    f"{plugin.problem}\nRun `plugrad doctor` for details."
                ) from plugin.error
        return None

    def backends(self) -> dict[str, Plugin]:
        """Every backend that is installed and usable, with its plugin; loads all plugins."""
        return {name: plugin for plugin in self.load_all() for name in plugin.backends}

    def extend_cli(self, app: Any) -> None:
        """Let every installed plugin add its commands; one that fails is recorded and left out."""
        for plugin in self.load_all():
            if plugin.error is None:
                try:
                    self._ask(plugin.module, "plugrad_cli", app=app)
                except Exception as error:
                    plugin.error = error

    def _scanned(self) -> dict[str, Plugin]:
        if self._plugins is None:
            self._plugins = {}
            for entry in importlib.metadata.entry_points(group=GROUP):
                _note(self._plugins, entry)
        return self._plugins

    def _in_order(self, first: str) -> Iterable[Plugin]:
        """Loaded plugins, the one that is named `first` before the others; lazily."""
        names = list(self.discovered())
        names.sort(key=lambda name: name != first)
        return (self.load(name) for name in names)

    def _adopt(self, plugin: Plugin, module: object) -> None:
        """Register an imported plugin's hooks and ask what it provides."""
        with plugin.lock:
            if self._pluggy.is_registered(module) or plugin.error is not None:
                return
            try:
                # Before the hooks are looked at: another version may have others.
                if hasattr(module, "plugrad_api_version"):
                    version, who = module.plugrad_api_version, f"plugin {plugin.name!r}"
                    check_api_version(version, who, plugin.distribution)
                self._register_hooks(plugin, module)
                for operators in self._items(module, "plugrad_ops"):
                    plugin.libraries.append(_load_operators(operators, plugin, module))
                for provided in self._items(module, "plugrad_backends"):
                    backend = _checked_backend(provided, plugin.distribution)
                    plugin.backends[backend.name] = backend
                for mapping in self._ask(module, "plugrad_namespaces"):
                    plugin.namespaces.update(mapping)
                plugin.module = module
            except Exception as error:
                plugin.error = error
                plugin.backends.clear()
                plugin.namespaces.clear()
                if self._pluggy.is_registered(module):
                    self._pluggy.unregister(module)

    def _register_hooks(self, plugin: Plugin, module: object) -> None:
        for name in dir(module):
            options = self._pluggy.parse_hookimpl_opts(module, name)
            if options is not None and not options["optionalhook"]:
                _check_hook_name(options["specname"] or name)
        self._pluggy.register(module, plugin.name)
        self._observe_backward()

    def _observe_backward(self) -> None:
        """Tell the engine of the observers, once some plugin has one: the engine pays for it."""
        hook = self._pluggy.hook
        begin, end = hook.plugrad_backward_begin, hook.plugrad_backward_end
        if not self._observes_backward and (begin.get_hookimpls() or end.get_hookimpls()):
            from plugrad.autograd.engine.callbacks import observe_backward

            self._observes_backward = True
            observe_backward(begin, end)

    def _ask(self, module: object, hook: str, **arguments: object) -> list[Any]:
        """What one plugin answers to a hook, in a list; empty if it does not implement it."""
        others = [plugin for plugin in self._pluggy.get_plugins() if plugin is not module]
        answers: list[Any] = self._pluggy.subset_hook_caller(hook, others)(**arguments)
        return answers

    def _items(self, module: object, hook: str) -> Iterable[Any]:
        for answer in self._ask(module, hook):
            if not isinstance(answer, Iterable) or isinstance(answer, str):
                raise PluginError(f"{hook}() must return a list, got {type(answer).__name__}")
            yield from answer

    def _missing_backend(self, name: str, wanted_by: str) -> str:
        installed = self.backends()
        lines = [f"No backend named {name!r} is installed{_wanted(wanted_by)}."]
        close = _nearest(name, installed)
        if close:
            lines[0] += f" Did you mean {close[0]!r}?"
        shown = [f"{found} ({plugin.origin})" for found, plugin in sorted(installed.items())]
        lines.append(f"Installed: {', '.join(shown) or 'none'}.")
        lines += [
            f"Not usable: {plugin.name} ({plugin.origin}): {plugin.problem}"
            for plugin in self.discovered().values()
            if plugin.error is not None
        ]
        if name in _PUBLISHED_BACKENDS:
            lines.append(f"To get it: pip install plugrad-{name}")
        else:
            lines.append(
                f"If there is a plugin for it, it is called plugrad-{name} by convention: "
                f"pip install plugrad-{name}"
            )
        if not installed and name != "cpu":
            lines.append("To compute with NumPy: pip install plugrad-cpu")
        return "\n".join(lines)


def _note(plugins: dict[str, Plugin], entry: importlib.metadata.EntryPoint) -> None:
    distribution = entry.dist
    plugin = Plugin(
        entry.name,
        entry.value,
        "" if distribution is None else distribution.name,
        "" if distribution is None else distribution.version,
    )
    other = plugins.setdefault(plugin.name, plugin)
    if other is not plugin and other.target != plugin.target:
        plugin.error = PluginError(
            f"{other.origin} has a plugin of the same name, {plugin.name!r}: uninstall one of them"
        )
        plugins[f"{plugin.name} of {plugin.origin}"] = plugin


def _nearest(name: str, valid: Iterable[str]) -> list[str]:
    import difflib  # only errors need it

    return difflib.get_close_matches(name, list(valid), n=1)


def _wanted(wanted_by: str) -> str:
    return f" (chosen by {wanted_by})" if wanted_by else ""


def _check_hook_name(name: str) -> None:
    valid = [known for known in vars(hookspecs) if known.startswith("plugrad_")]
    if name not in valid:
        close = _nearest(name, valid)
        hint = f"did you mean {close[0]}?" if close else f"hooks are {', '.join(valid)}"
        raise PluginError(f"implements an unknown hook, {name}; {hint}")


def _checked_backend(provided: object, distribution: str) -> Backend:
    backend = provided() if isinstance(provided, type) else provided
    if not isinstance(backend, Backend):
        raise PluginError(
            "plugrad_backends() must return instances or subclasses of plugrad.plugins.Backend, "
            f"got {type(backend).__name__}"
        )
    check_api_version(backend.api_version, f"backend {backend.name!r}", distribution)
    return backend


def _load_operators(provided: object, plugin: Plugin, module: object) -> object:
    """Operators declared in Python are known by now; a YAML file goes through the generator."""
    if isinstance(provided, str | PathLike):
        from plugrad.codegen import load

        namespace = plugin.name.replace("-", "_")
        return load(Path(provided), namespace=namespace, functions=vars(module))
    return provided
