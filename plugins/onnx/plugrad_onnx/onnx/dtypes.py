"""plugrad's dtypes in ONNX."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx

import plugrad
from plugrad_onnx.onnx.errors import OnnxExporterError

TYPES: dict[Any, int] = {
    plugrad.float32: onnx.TensorProto.FLOAT,
    plugrad.float64: onnx.TensorProto.DOUBLE,
    plugrad.float16: onnx.TensorProto.FLOAT16,
    plugrad.bfloat16: onnx.TensorProto.BFLOAT16,
    plugrad.int8: onnx.TensorProto.INT8,
    plugrad.int16: onnx.TensorProto.INT16,
    plugrad.int32: onnx.TensorProto.INT32,
    plugrad.int64: onnx.TensorProto.INT64,
    plugrad.uint8: onnx.TensorProto.UINT8,
    plugrad.bool: onnx.TensorProto.BOOL,
}
# Most runtimes support these only in Cast and in operators that move elements.
NARROW = frozenset([plugrad.bool, plugrad.uint8, plugrad.int8, plugrad.int16])


def onnx_type(dtype: Any) -> int:
    """ONNX's number for a dtype.

    Raises:
        OnnxExporterError: it has none, because the dtype is complex.
    """
    if dtype not in TYPES:
        raise OnnxExporterError(
            f"values of {dtype} cannot be exported: ONNX's operators have no complex numbers; "
            "compute with real and imaginary parts"
        )
    return TYPES[dtype]


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor's elements as an array that ONNX accepts, in row-major order."""
    onnx_type(tensor.dtype)
    return np.ascontiguousarray(tensor.detach().cpu().resolve_neg().numpy()).reshape(tensor.shape)


def little_endian(elements: np.ndarray[Any, Any]) -> bytes:
    """Elements as an ONNX file stores them."""
    if sys.byteorder == "big":
        elements = elements.byteswap()
    return elements.tobytes()


def computes_in(dtype: Any) -> Any:
    """The dtype for arithmetic on narrow integers, before the result is cast back."""
    return plugrad.int32 if dtype in NARROW else dtype
