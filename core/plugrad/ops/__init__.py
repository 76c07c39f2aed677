"""Operators by name (`plugrad.ops.ns.name.overload`); their YAML entries are in this folder."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from plugrad.ops.namespace import find_namespace

    return find_namespace(name)


def __dir__() -> list[str]:
    """The namespaces that have operators, and the plugins that may bring one when they load."""
    from plugrad.dispatch.plugin_hooks import loadable_namespaces
    from plugrad.ops.namespace import known_namespaces

    return sorted({*known_namespaces(), *loadable_namespaces()})
