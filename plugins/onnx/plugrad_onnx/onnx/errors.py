"""The errors of an export."""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """The model cannot be written as ONNX; the message says what to change."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator has no lowering and does not decompose into operators that have one."""


class SizeError(OnnxExporterError):
    """A number depends on a dynamic size in a way that ONNX nodes here cannot compute."""
