"""How an operator is declared: the YAML entry with its text, example and derivatives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plugrad.dispatch.operator import Operator
from plugrad.plugins import get_manager

# Where an entry begins.
_START = re.compile(r"(?m)^- *func: *")


def entry_of(op: Operator) -> Mapping[str, Any]:
    """The entry of an operator as its YAML file has it; empty if it was declared in Python.

    An in-place variant that is made from the functional operator has that one's entry.
    """
    import yaml  # a fragment of one file is all that is parsed

    functional = f"{op.name.removesuffix('_')}.{op.overload}".removesuffix(".")
    known = _texts(op.namespace)
    text = known.get(op.full_name) or known.get(functional)
    if text is None:
        return {}
    found: list[dict[str, Any]] = yaml.safe_load(f"- func: {text}")
    return found[0]


def derivatives(entry: Mapping[str, Any]) -> dict[str, str]:
    """By argument, the formula of its gradient: of `grad`, arguments and `result`."""
    return {str(key): str(value) for key, value in entry.get("derivatives", {}).items()}


@cache
def _texts(namespace: str) -> dict[str, str]:
    """By operator, the text of its entry behind the key `func`."""
    entries = [
        entry
        for file in _files(namespace)
        for entry in _START.split(file.read_text(encoding="utf-8"))[1:]
    ]
    return {entry.partition("(")[0].strip(): entry for entry in entries}


def _files(namespace: str) -> Iterable[Path]:
    packages = ["plugrad.ops"] if namespace == "plugrad" else _packages(namespace)
    for package in packages:
        spec = find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            yield from sorted(Path(place).rglob("*.yaml"))


def _packages(namespace: str) -> list[str]:
    """The packages of the plugins that define operators of a namespace."""
    plugins = get_manager().load_all()
    return [
        plugin.package
        for plugin in plugins
        if plugin.is_usable and namespace in get_manager().operator_namespaces(plugin)
    ]
