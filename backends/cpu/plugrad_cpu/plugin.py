"""The hooks of this plugin, which the entry point `plugrad: cpu` names."""

from __future__ import annotations

from plugrad.plugins import Backend, hookimpl
from plugrad_cpu.backend import CpuBackend


@hookimpl
def plugrad_backends() -> list[Backend]:
    """The backend for `device="cpu"`."""
    return [CpuBackend()]
