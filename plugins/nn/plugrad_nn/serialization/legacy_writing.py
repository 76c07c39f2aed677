"""Writes files as PyTorch did before 1.6: pickles, then the bytes of storages."""

from __future__ import annotations

import pickle
import sys
from typing import Any, BinaryIO

from plugrad_nn.serialization.legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from plugrad_nn.serialization.rebuilding import swap_bytes
from plugrad_nn.serialization.zip_writing import pickled


def write_legacy(obj: Any, protocol: int, file: BinaryIO) -> None:
    """Write an object."""
    data, storages = pickled(obj, protocol, with_views=True)
    machine = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for head in (MAGIC_NUMBER, PROTOCOL_VERSION, machine):
        file.write(pickle.dumps(head, protocol))
    file.write(data)
    file.write(pickle.dumps([storage.key for storage in storages], protocol))
    for storage in storages:
        bytes_ = storage.bytes()
        size = 1 if storage.dtype is None else storage.dtype.itemsize
        if sys.byteorder != "little" and storage.dtype is not None:
            bytes_ = bytes_.copy()
            swap_bytes(bytes_, storage.dtype)
        file.write((storage.nbytes // size).to_bytes(8, "little"))
        file.write(bytes_.data)
