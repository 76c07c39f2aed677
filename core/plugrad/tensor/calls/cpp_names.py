"""C++ names of the element types, which some of PyTorch's error messages contain."""

from __future__ import annotations

from typing import Final

CPP_NAMES: Final = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "float8_e5m2": "c10::Float8_e5m2",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
# Messages made by another part of PyTorch leave out the `int`.
SHORT_CPP_NAMES: Final = {**CPP_NAMES, "int16": "short", "int64": "long"}
