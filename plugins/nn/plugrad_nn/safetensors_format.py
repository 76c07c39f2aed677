"""The safetensors file format: arrays and a JSON header, read and written on NumPy arrays.

Layout: 8 bytes little-endian header length, the JSON header {name: {dtype, shape, data_offsets}}
padded with spaces to a multiple of 8, then the arrays' bytes, row-major and little-endian, without
gaps. Text goes under "__metadata__". Source: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# NumPy's names of element types (bfloat16 is ml_dtypes') and the format's.
CODES: dict[str, str] = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
}
METADATA = "__metadata__"


def encode(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a file with these arrays; wide elements come first so that all are aligned."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    blocks: list[bytes] = []
    offset = 0
    for name in order:
        array = arrays[name]
        block = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": CODES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(block)],
        }
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *blocks])


def decode(
    data: bytes, dtypes: Mapping[str, np.dtype[Any]]
) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays (writable copies) and the metadata of a file.

    Args:
        data: the whole file.
        dtypes: NumPy's element type for each of the format's codes.

    Raises:
        ValueError: `data` is not such a file; the message says what is wrong with it.
    """
    header, start = _header(data)
    metadata = header.pop(METADATA, {})
    arrays: dict[str, Array] = {}
    for name, entry in header.items():
        try:
            code, shape = entry["dtype"], [int(size) for size in entry["shape"]]
            begin, end = entry["data_offsets"]
            dtype = dtypes[code]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"safetensors: entry {name!r} cannot be read: {entry}") from error
        if end - begin != math.prod(shape) * dtype.itemsize or not 0 <= begin <= end:
            raise ValueError(f"safetensors: entry {name!r} has the wrong number of bytes: {entry}")
        if start + end > len(data):
            raise ValueError(
                f"safetensors: the file is cut off: entry {name!r} ends at byte {start + end}, "
                f"the file at {len(data)}"
            )
        block = np.frombuffer(data, dtype=np.uint8, count=end - begin, offset=start + begin)
        arrays[name] = block.copy().view(dtype).reshape(shape)
    return arrays, metadata


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """The parsed header and where the arrays' bytes start."""
    start = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or start > len(data):
        raise ValueError("safetensors: not a safetensors file: its header is incomplete")
    try:
        header = json.loads(data[8:start])
    except ValueError as error:
        raise ValueError("safetensors: not a safetensors file: its header is not JSON") from error
    if not isinstance(header, dict):
        raise ValueError("safetensors: not a safetensors file: its header is not a JSON object")
    return header, start
