"""Storages and dtypes by the names that PyTorch's files call them."""

from __future__ import annotations

from typing import Any, Final

import plugrad

# Files name the class of a storage. Later dtypes have no class: they are stored as bytes.
STORAGES: Final[dict[str, Any]] = {
    name: getattr(plugrad, name)
    for name in (
        "FloatStorage",
        "DoubleStorage",
        "HalfStorage",
        "BFloat16Storage",
        "LongStorage",
        "IntStorage",
        "ShortStorage",
        "CharStorage",
        "ByteStorage",
        "BoolStorage",
        "ComplexFloatStorage",
        "ComplexDoubleStorage",
    )
}
NAMES_OF_STORAGES: Final[dict[Any, str]] = {
    storage.dtype: name for name, storage in STORAGES.items()
}
QUANTIZED_STORAGES: Final = (
    *("QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage"),
)
DTYPES: Final[dict[str, plugrad.dtype]] = {
    dtype.name: dtype
    for dtype in (
        *(plugrad.uint8, plugrad.uint16, plugrad.uint32, plugrad.uint64),
        *(plugrad.int8, plugrad.int16, plugrad.int32, plugrad.int64),
        *(plugrad.float16, plugrad.float32, plugrad.float64, plugrad.bfloat16),
        *(plugrad.float8_e4m3fn, plugrad.float8_e5m2),
        *(plugrad.complex64, plugrad.complex128, plugrad.bool),
    )
}
# Dtypes of PyTorch that plugrad does not have.
OTHER_DTYPES: Final = (
    *("complex32", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
    *("qint8", "quint8", "qint32", "quint4x2", "quint2x4"),
    *("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
)
