"""Finds the installed plugins in the metadata of distributions, without importing them."""

from __future__ import annotations

import importlib.metadata
from typing import Final

from plugrad.plugins.loading.plugin import Plugin

GROUP: Final = "plugrad"

# Plugins that bring kernels for operators of others: the entry's name is the operators' namespace.
KERNELS_GROUP: Final = "plugrad.kernels"


def installed_plugins() -> list[Plugin]:
    """One for each entry point of the two groups, by name, distribution and module."""
    found: dict[tuple[str, str, str], Plugin] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        plugin = _plugin(entry, entry.name)
        found.setdefault((plugin.name, "", plugin.target), plugin)
    by_target = {(plugin.distribution, plugin.target): plugin for plugin in found.values()}
    for entry in importlib.metadata.entry_points(group=KERNELS_GROUP):
        plugin = _plugin(entry, "")
        plugin.name = plugin.distribution or plugin.target
        known = by_target.setdefault((plugin.distribution, plugin.target), plugin)
        if entry.name not in known.adds_to:
            known.adds_to = tuple(sorted((*known.adds_to, entry.name)))
    return sorted(
        {id(plugin): plugin for plugin in (*found.values(), *by_target.values())}.values(),
        key=lambda plugin: (plugin.name, plugin.distribution, plugin.target),
    )


def installed_names() -> dict[str, str]:
    """The names of the installed plugins, and their packages; quicker than all about them."""
    return {
        entry.name if group == GROUP else entry.value: entry.value.partition(".")[0]
        for group in (GROUP, KERNELS_GROUP)
        for entry in importlib.metadata.entry_points(group=group)
    }


def merged(known: list[Plugin], found: list[Plugin]) -> list[Plugin]:
    """The plugins found now; known plugins keep their objects, and loaded ones stay."""
    by_key = {plugin.identity: plugin for plugin in known}
    plugins: list[Plugin] = []
    for plugin in found:
        before = by_key.pop(plugin.identity, plugin)
        before.version = plugin.version
        before.requires = plugin.requires
        before.adds_to = plugin.adds_to
        plugins.append(before)
    plugins += [one for one in by_key.values() if one.by_hand is not None or one.module is not None]
    return plugins


def _plugin(entry: importlib.metadata.EntryPoint, name: str) -> Plugin:
    if entry.dist is None:
        return Plugin(name, entry.value)
    metadata = entry.dist.metadata  # read from its file at each access
    requires = tuple(metadata.get_all("Requires-Dist") or ())
    return Plugin(name, entry.value, metadata["Name"], metadata["Version"], requires)
