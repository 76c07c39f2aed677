"""Loads and unloads a plugin: its hooks, what it provides, what it defined, its modules."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import PathFinder
from inspect import isfunction
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pluggy

from plugrad.dispatch.backends.active import active_backends, check_name, deactivate_backend
from plugrad.dispatch.backends.api_version import check_api_version
from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.scope import Locked
from plugrad.errors import DuplicateDefinitionError, PluginError, PluginWarning
from plugrad.plugins import hookspecs
from plugrad.plugins.loading.conflicts import conflict
from plugrad.plugins.loading.messages import mend_of_unfit, unfit
from plugrad.plugins.loading.plugin import Plugin
from plugrad.plugins.loading.registrations import REGISTRATIONS, made_by

# What a plugin's code may raise; an interrupt is not the plugin's fault.
FAILURES = (Exception, SystemExit)

HOOKS: Final = tuple(name for name in vars(hookspecs) if name.startswith("plugrad_"))


class Hooks:
    """Pluggy's side: which modules implement what, and calls of single plugins."""

    def __init__(self) -> None:
        self.pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self.pluggy.add_hookspecs(hookspecs)
        self._observes_backward = False
        # Pluggy has none: threads may register plugins at the same time.
        self._lock = threading.RLock()

    def renew_lock(self) -> None:
        """In the child of a fork: the thread that held the lock does not exist."""
        self._lock = threading.RLock()

    def register(self, plugin: Plugin, module: object) -> None:
        """Register a module's hooks; PluginError if one is unknown or has wrong arguments."""
        for name in dir(module):
            options = self.pluggy.parse_hookimpl_opts(module, name)
            if options is not None and not options["optionalhook"]:
                _check_hook_name(options["specname"] or name)
            elif options is None and name in HOOKS and isfunction(getattr(module, name)):
                raise PluginError(
                    f"defines {name}() without marking it: write @hookimpl, from "
                    "plugrad.plugins, above it"
                )
        with Locked(self._lock):
            self.pluggy.register(module, plugin.name)
            self._observe_backward()

    def unregister(self, module: object) -> None:
        """Remove a module's hooks, if it has any."""
        with Locked(self._lock):
            if self.pluggy.is_registered(module):
                self.pluggy.unregister(module)

    def implements(self, module: object, hook: str) -> bool:
        """Whether a module, registered or not, implements a hook."""
        found = ((name, self.pluggy.parse_hookimpl_opts(module, name)) for name in dir(module))
        return any(
            options is not None and (options["specname"] or name) == hook for name, options in found
        )

    def ask(self, module: object, hook: str, **arguments: object) -> list[Any]:
        """What one plugin answers to a hook, in a list; empty if it does not implement it."""
        with Locked(self._lock):
            others = [plugin for plugin in self.pluggy.get_plugins() if plugin is not module]
            caller = self.pluggy.subset_hook_caller(hook, others)
        answers: list[Any] = caller(**arguments)
        return answers

    def items(self, module: object, hook: str) -> Iterable[Any]:
        """The items of the list that a hook returns."""
        for answer in self.ask(module, hook):
            if not isinstance(answer, Iterable) or isinstance(answer, str | Mapping):
                raise PluginError(f"{hook}() must return a list, got {type(answer).__name__}")
            yield from answer

    def mappings(self, module: object, hook: str) -> Iterable[tuple[str, Any]]:
        """The items of the mapping that a hook returns."""
        for answer in self.ask(module, hook):
            if not isinstance(answer, Mapping):
                raise PluginError(f"{hook}() must return a mapping, got {type(answer).__name__}")
            for name, value in answer.items():
                if not isinstance(name, str):
                    raise PluginError(f"{hook}() must map strings, got the key {name!r}")
                yield name, value

    def _observe_backward(self) -> None:
        """Install the observers in the engine if a plugin has one, because they cost the engine
        time."""
        hook = self.pluggy.hook
        begin, end = hook.plugrad_backward_begin, hook.plugrad_backward_end
        if not self._observes_backward and (begin.get_hookimpls() or end.get_hookimpls()):
            from plugrad.autograd.engine.callbacks import observe_backward

            self._observes_backward = True
            observe_backward(begin, end)


def take_up(plugin: Plugin, module: object, hooks: Hooks) -> None:
    """Register an imported plugin's hooks, and call the hooks that list what it provides.

    Raises:
        Exception: whatever is wrong with the plugin; the caller takes it down again.
    """
    with made_by(plugin):
        # Before the hooks are looked at: another version may have others.
        if hasattr(module, "plugrad_api_version"):
            version, who = module.plugrad_api_version, f"plugin {plugin.name!r}"
            check_api_version(version, who, plugin.distribution)
        if plugin.misfit:
            # It may work: it was written for this version of the contract.
            text = f"{unfit(plugin)}: it may not work. {mend_of_unfit(plugin)}."
            warnings.warn(text, PluginWarning, stacklevel=2)
        hooks.register(plugin, module)
        for operators in hooks.items(module, "plugrad_ops"):
            plugin.libraries.append(_load_operators(operators, plugin, module))
        for provided in hooks.items(module, "plugrad_backends"):
            backend = _checked_backend(provided, plugin.distribution)
            if backend.name in plugin.backends:
                raise PluginError(f"plugrad_backends() returns two backends named {backend.name!r}")
            plugin.backends[backend.name] = backend
        for name, claimed in hooks.mappings(module, "plugrad_namespaces"):
            _check_claim(name, claimed)
            plugin.namespaces[name] = claimed
        for name, source in hooks.mappings(module, "plugrad_kernels"):
            plugin.kernels.setdefault(name, []).append(source)
        for name, source in hooks.mappings(module, "plugrad_variants"):
            plugin.variants.setdefault(name, []).append(source)
        plugin.module = module


def take_down(plugin: Plugin, module: object | None, hooks: Hooks, others: list[Plugin]) -> None:
    """Undo everything that importing and registering a plugin did, even if it stopped halfway.

    Args:
        module: its module, if that was imported.
        others: the other plugins; their packages' modules and definitions stay.
    """
    plugin.is_going = True
    for active in active_backends():
        if plugin.backends.get(active.name) is active.backend:
            deactivate_backend(active.name)
    if module is not None:
        hooks.unregister(module)
    for library in plugin.libraries:
        _destroy(library)
    shared = any(other.package == plugin.package and other.is_settled for other in others)
    package = "" if shared else plugin.package
    foreign = {other.package for other in others}
    REGISTRATIONS.undo(REGISTRATIONS.of(plugin, package, foreign))
    _forget_namespaces(plugin)
    if plugin.by_hand is None:
        _forget_modules(plugin.target if shared else package)
    plugin.forget()


def explained(error: BaseException, plugin: Plugin, others: list[Plugin]) -> BaseException:
    """A plugin's error; for a name that is taken already, the owner; for a missing module, the
    module that named it."""
    if isinstance(error, ModuleNotFoundError) and _is_part_of(error.name or "", plugin.target):
        module, colon, _ = plugin.target.partition(":")
        only = f"; name the module alone, {module!r}" if colon else ""
        return PluginError(
            f"its entry point is {plugin.target!r}, but there is no module {error.name!r}{only}"
        )
    if not isinstance(error, DuplicateDefinitionError):
        return error
    for owner, package in REGISTRATIONS.makers(error.what, error.name):
        for other in others:
            if owner is other or (owner is None and other.package == package):
                what = {
                    "operator": f"the operator {error.name}",
                    "namespace": f"a library of kind DEF for the operators of {error.name!r}",
                    "kernel": f"a kernel of {error.name.replace(' ', ' for ')}",
                }[error.what]
                return conflict(what, [other, plugin])
    return error


def _is_part_of(module: str, target: str) -> bool:
    """Whether a module is the one that an entry point names, or a package that it is in."""
    return bool(module) and (target + ".").startswith(module + ".")


def _destroy(library: object) -> None:
    """Undo what the hook for operators gave: a family of the generator's, or a library."""
    if isinstance(library, ModuleType):
        from plugrad.codegen import unload

        unload(library)
        return
    destroy = getattr(library, "_destroy", None)
    if destroy is not None:
        destroy()


def _forget_namespaces(plugin: Plugin) -> None:
    face = sys.modules["plugrad"]
    for name, claimed in plugin.namespaces.items():
        vars(face).pop(name, None)
        if ":" not in claimed:
            _forget_modules(f"plugrad.{name}")


def _forget_modules(name: str) -> None:
    """Remove a module and its submodules, so that the next use imports them again."""
    if not name:
        return
    for module in list(sys.modules):
        if module == name or module.startswith(name + "."):
            del sys.modules[module]
            parent, _, child = module.rpartition(".")
            if parent in sys.modules:
                with contextlib.suppress(AttributeError):
                    delattr(sys.modules[parent], child)


def _check_hook_name(name: str) -> None:
    from plugrad.plugins.loading.messages import nearest

    if name not in HOOKS:
        close = nearest(name, HOOKS)
        hint = f"did you mean {close}?" if close else f"hooks are {', '.join(HOOKS)}"
        raise PluginError(f"implements an unknown hook, {name}; {hint}")


def _checked_backend(provided: object, distribution: str) -> Backend:
    backend = provided
    if isinstance(provided, type) and issubclass(provided, Backend):
        make: Callable[[], object] = provided
        try:
            backend = make()
        except TypeError as error:
            raise PluginError(f"cannot make the backend {provided.__name__}(): {error}") from error
    if not isinstance(backend, Backend):
        known = f"the class {backend.__name__}" if isinstance(backend, type) else ""
        raise PluginError(
            "plugrad_backends() must return instances or subclasses of plugrad.plugins.Backend, "
            f"got {known or type(backend).__name__}"
        )
    check_name(backend)
    check_api_version(backend.api_version, f"backend {backend.name!r}", distribution)
    return backend


def _check_claim(name: str, claimed: object) -> None:
    if not isinstance(claimed, str):
        raise PluginError(
            "plugrad_namespaces() must map names to 'module' or 'module:attribute', got "
            f"{claimed!r} for {name!r}"
        )
    if not name.isidentifier() or name.startswith("_"):
        raise PluginError(f"plugrad_namespaces() claims {name!r}, which is not a public name")
    if _is_own(name):
        raise PluginError(f"plugrad_namespaces() claims {name!r}, which plugrad itself has")


def _is_own(name: str) -> bool:
    """Whether plugrad has something of that name without any plugin."""
    face = sys.modules["plugrad"]
    found = vars(face).get(name)
    if isinstance(found, ModuleType) and found.__name__ != f"plugrad.{name}":
        return False  # a plugin's module, imported under its second name
    return found is not None or PathFinder.find_spec(f"plugrad.{name}", face.__path__) is not None


def _load_operators(provided: object, plugin: Plugin, module: object) -> object:
    """Operators declared in Python are registered by now; a YAML file goes through the
    generator."""
    functions: Any = vars(module)
    if isinstance(provided, tuple) and len(provided) == 2:
        provided, functions = provided
    if isinstance(provided, str | PathLike):
        from plugrad.codegen import load

        namespace = plugin.name.replace("-", "_")
        return load(Path(provided), namespace=namespace, functions=functions)
    return provided
