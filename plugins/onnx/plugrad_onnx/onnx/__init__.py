"""`plugrad.onnx`: models as ONNX files, by the names of `torch.onnx`; see docs/onnx.md."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plugrad_onnx.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from plugrad_onnx.onnx.registry import register_lowering
from plugrad_onnx.onnx.sizes import Varying
from plugrad_onnx.onnx.state import is_in_onnx_export

if TYPE_CHECKING:
    from plugrad_onnx.onnx.builder import Builder, Value
    from plugrad_onnx.onnx.exporting import export
    from plugrad_onnx.onnx.program import ONNXProgram

__all__ = [
    "Builder",
    "ONNXProgram",
    "OnnxExporterError",
    "UnsupportedOperatorError",
    "Value",
    "Varying",
    "export",
    "is_in_onnx_export",
    "register_lowering",
]

# They need the package onnx, which is slow to import, and programs call `is_in_onnx_export` often.
_LATER = {"Builder": "builder", "ONNXProgram": "program", "Value": "builder", "export": "exporting"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LATER[name]}")
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted(globals().keys() | _LATER.keys())
