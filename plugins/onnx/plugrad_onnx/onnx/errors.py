"""What cannot be exported."""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """A model cannot be written as ONNX as it is; the message says what to do."""


class UnsupportedOperatorError(OnnxExporterError):
    """There is no lowering for an operator, and it is not made of others that have one."""


class SizeError(OnnxExporterError):
    """A number depends on a dynamic size in a way that no ONNX node here computes."""
