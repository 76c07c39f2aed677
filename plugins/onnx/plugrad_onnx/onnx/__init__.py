"""`plugrad.onnx`: models as ONNX files, by the names of `torch.onnx`; see docs/onnx.md."""

from __future__ import annotations

from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from plugrad_onnx.onnx.exporting import export
from plugrad_onnx.onnx.program import ONNXProgram
from plugrad_onnx.onnx.registry import register_lowering
from plugrad_onnx.onnx.sizes import Varying

__all__ = [
    "Builder",
    "ONNXProgram",
    "OnnxExporterError",
    "UnsupportedOperatorError",
    "Value",
    "Varying",
    "export",
    "register_lowering",
]
