"""Finds carriers by name, among those of all plugins: the hook `plugrad_carriers`."""

from __future__ import annotations

import importlib
from typing import Any

from plugrad.errors import PluginError
from plugrad.plugins import get_manager
from plugrad_distributed.carriers.carrier import Carrier

__all__ = ["ALIASES", "carrier_class", "carrier_names"]

# MPI replaces PyTorch's backend for the host, so programs that name it run unchanged.
ALIASES = {"gloo": "mpi"}


def _claims(*, load: bool = True) -> dict[str, list[tuple[str, Any]]]:
    """The plugins that provide a carrier and their descriptions of it, by name. Only these are
    loaded: loading all plugins would import JAX and similar packages in each process."""
    manager = get_manager()
    if load:
        manager.load_all()
    found: dict[str, list[tuple[str, Any]]] = {}
    for implementation in manager.hook.plugrad_carriers.get_hookimpls():
        for name, source in implementation.function().items():
            found.setdefault(name, []).append((implementation.plugin_name, source))
    return found


def carrier_names() -> list[str]:
    """The carriers that installed plugins provide."""
    return sorted(_claims())


def carrier_class(name: str) -> type[Carrier]:
    """The carrier with this name.

    Raises:
        ValueError: no plugin provides it.
        PluginError: two plugins provide it, or it cannot be imported.
    """
    name = ALIASES.get(name, name)
    claims = _claims(load=False)
    if name not in claims:
        claims = _claims()
    if name not in claims:
        raise ValueError(
            f"init_process_group(): no backend {name!r} for collectives; there are "
            f"{', '.join(map(repr, sorted(claims)))}"
        )
    own = [claim for claim in claims[name] if claim[0] == name] or claims[name]
    if len(own) > 1:
        raise PluginError(
            f"{' and '.join(plugin for plugin, _ in own)} both provide the carrier {name!r}: "
            "uninstall one of them, or disable it in plugrad.toml"
        )
    plugin, source = own[0]
    if isinstance(source, str):
        module, _, attribute = source.partition(":")
        try:
            source = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"the carrier {name!r} of {plugin} cannot be used: {error}"
            ) from error
    if not (isinstance(source, type) and issubclass(source, Carrier)):
        raise PluginError(f"the carrier {name!r} of {plugin} is not a Carrier: {source!r}")
    return source
