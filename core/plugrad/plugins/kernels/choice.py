"""The configuration's choice of kernels, operator by operator: ``"cpu.gelu" = "plugrad-fast"``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.plugins.config.current import current_config
from plugrad.plugins.config.keys import ConfigError, Setting
from plugrad.plugins.loading.messages import nearest
from plugrad.plugins.loading.plugin import Plugin


def by_owner(plugins: Iterable[Plugin]) -> dict[str, Plugin]:
    """Plugins by the label of their kernels: distribution and version, and the plugin's name if
    several share those."""
    found: dict[str, Plugin] = {}
    for plugin in plugins:
        owner = plugin.origin
        found[owner if owner not in found else f"{plugin.name} of {owner}"] = plugin
    return found


def chosen_plugins(backend: str, plugins: Iterable[Plugin]) -> list[Plugin]:
    """The plugins that the configuration chooses for operators on a backend."""
    chosen = {str(setting.value) for setting in current_config().kernels(backend).values()}
    return [plugin for plugin in plugins if any(plugin.is_called(name) for name in chosen)]


def chosen_owners(
    active: ActiveBackend,
    plugins: list[Plugin],
    installed: Callable[[], Iterable[Plugin]],
    strict: bool,
) -> dict[str, str]:
    """By operator's name, the package that comes first on a backend.

    Args:
        plugins: the usable plugins.
        installed: returns all plugins, for the message about a choice that is impossible.
        strict: whether an impossible choice raises; otherwise it is left out.

    Raises:
        ConfigError: the operator or the package does not exist, or has no such kernel.
    """
    found: dict[str, str] = {}
    owners = {id(plugin): owner for owner, plugin in by_owner(plugins).items()}
    for operator, setting in current_config().kernels(active.name).items():
        problem = _problem(active, operator, setting, plugins, installed)
        if not problem:
            (plugin, *_) = _called(setting, plugins)
            found[operator] = owners[id(plugin)]
        elif strict:
            raise ConfigError(f"{setting.source}: {problem}")
    return found


def _called(setting: Setting, plugins: Iterable[Plugin]) -> list[Plugin]:
    return [plugin for plugin in plugins if plugin.is_called(str(setting.value))]


def _problem(
    active: ActiveBackend,
    operator: str,
    setting: Setting,
    plugins: list[Plugin],
    installed: Callable[[], Iterable[Plugin]],
) -> str:
    """Why a choice cannot be followed; empty if it can."""
    unknown = active.unknown_names({operator: None})
    if unknown:
        hint = unknown[operator].partition("; ")[2]
        return f"there is no operator named {operator!r}; {hint}"
    own = [plugin for plugin in plugins if plugin.backends.get(active.name) is active.backend]
    called = _called(setting, plugins)
    if not called:
        return _not_there(active.name, setting, plugins, list(installed()))
    for plugin in called:
        table = _names_of(plugin, active.name)
        if plugin in own:
            table |= set(active.own_kernels)
        if _has(table, operator):
            return ""
    bringing = [
        plugin.origin
        for plugin in plugins
        if _has(_names_of(plugin, active.name), operator) or plugin in own
    ]
    return (
        f"{called[0].origin} has no kernel for {operator!r} on backend {active.name!r}; those that "
        f"have: {', '.join(bringing) or 'none'}"
    )


def _names_of(plugin: Plugin, backend: str) -> set[str]:
    """What a plugin has kernels for, or variants of them, that it provides for a backend."""
    variants = plugin.variant_lists.get(backend, ())
    return {*plugin.kernel_tables.get(backend, {}), *(one.operator for one in variants)}


def _has(table: Iterable[str], operator: str) -> bool:
    """Whether a table has a kernel for an operator, or for one of its overloads."""
    base = operator.partition(".")[0]
    return any(name in (operator, base) or name.partition(".")[0] == operator for name in table)


def _not_there(
    backend: str, setting: Setting, plugins: list[Plugin], installed: list[Plugin]
) -> str:
    for plugin in _called(setting, installed):
        if plugin.disabled:
            return f"{plugin.origin} is disabled by {plugin.disabled}"
        if plugin.problem:
            return f"{plugin.origin} cannot be used: {plugin.problem}"
    known = [name for plugin in installed for name in (plugin.name, plugin.distribution) if name]
    close = nearest(str(setting.value), known)
    bringing = [
        plugin.distribution or plugin.name
        for plugin in plugins
        if backend in plugin.kernels or backend in plugin.variants
    ]
    hint = (
        f"did you mean {close!r}?"
        if close
        else (f"those that provide kernels for {backend!r}: {', '.join(bringing) or 'none'}")
    )
    return f"{setting.value!r} is not an installed plugin or distribution; {hint}"
