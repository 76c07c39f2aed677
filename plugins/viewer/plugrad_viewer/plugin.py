"""The hooks of this plugin, which the entry point `plugrad: viewer` names."""

from __future__ import annotations

from plugrad.plugins import hookimpl

plugrad_api_version = (1, 0)


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    return {"viewer": "plugrad_viewer.viewer"}
