"""The hooks of this plugin, which the entry point `plugrad: onnx` names."""

from __future__ import annotations

from plugrad.plugins import hookimpl

plugrad_api_version = (1, 0)


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    return {"onnx": "plugrad_onnx.onnx"}
