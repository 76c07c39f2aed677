"""What the entry point `plugrad: onnx` names: the hooks of this plugin."""

from __future__ import annotations

from plugrad.plugins import hookimpl

plugrad_api_version = (1, 0)


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    return {"onnx": "plugrad_onnx.onnx"}
