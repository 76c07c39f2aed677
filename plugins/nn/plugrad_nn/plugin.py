"""What plugrad-nn adds to plugrad: nn, optim, utils, multiprocessing, save and load, the demo."""

from __future__ import annotations

from typing import Any

import pluggy

hookimpl = pluggy.HookimplMarker("plugrad")

NAMESPACES: dict[str, str] = {
    "nn": "plugrad_nn.nn",
    "optim": "plugrad_nn.optim",
    "utils": "plugrad_nn.utils",
    "multiprocessing": "plugrad_nn.multiprocessing",
    "serialization": "plugrad_nn.serialization",
    "hub": "plugrad_nn.hub",
    "save": "plugrad_nn.serialization:save",
    "load": "plugrad_nn.serialization:load",
}


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    """Names under `plugrad`, and the module (or module:attribute) that is loaded on first use."""
    return NAMESPACES


@hookimpl
def plugrad_cli(app: Any) -> None:
    """Adds `plugrad demo`."""
    from plugrad_nn.demo.command import demo

    app.command("demo")(demo)
