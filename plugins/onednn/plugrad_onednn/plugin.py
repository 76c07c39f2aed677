"""The hooks of this plugin, which the distribution's entry point names."""

from __future__ import annotations

from plugrad.plugins import hookimpl

plugrad_api_version = (1, 0)


@hookimpl
def plugrad_variants() -> dict[str, str]:
    """Variants for the CPU; imported when that backend becomes active."""
    return {"cpu": "plugrad_onednn.variants:VARIANTS"}
