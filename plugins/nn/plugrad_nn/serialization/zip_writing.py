"""Writes zip files as PyTorch's: a pickle, and a record for each storage."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from plugrad_nn.serialization.options import get_crc32_options, skips_data
from plugrad_nn.serialization.pickling import SavedStorage, TorchPickler

# Where the bytes of storages begin in the file: so, a mapped one is aligned for any dtype.
ALIGNMENT: Final = 64
# The part of a record's header before the name and the padding, and the extra field of records over
# four gigabytes.
_HEADER: Final = 30
_LARGE: Final = 20
_PART: Final = 1 << 24
_PADDING_TAG: Final = b"FB"


def write_zip(
    obj: Any, file: BinaryIO, folder: str, protocol: int, byte_order: bool = True
) -> None:
    """Write an object.

    Args:
        folder: the name of the top folder in the file.
        protocol: pickle's.
        byte_order: whether to note the order of bytes.
    """
    data, storages = pickled(obj, protocol)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write_record(archive, f"{folder}/data.pkl", [data], len(data))
        texts = {".storage_alignment": str(ALIGNMENT), "byteorder": sys.byteorder}
        if not byte_order:
            del texts["byteorder"]
        for name, text in texts.items():
            _write_record(archive, f"{folder}/{name}", [text.encode()], len(text))
        for storage in storages:
            name = f"{folder}/data/{storage.key}"
            _write_record(archive, name, _parts(storage), storage.nbytes)
        _write_record(archive, f"{folder}/version", [b"3\n"], 2)
        if not get_crc32_options():
            for entry in archive.infolist():
                entry.CRC = 0


def pickled(obj: Any, protocol: int, with_views: bool = False) -> tuple[bytes, list[SavedStorage]]:
    """The pickle of an object, and the storages that it refers to."""
    buffer = io.BytesIO()
    pickler = TorchPickler(buffer, protocol, with_views)
    pickler.dump(obj)
    return buffer.getvalue(), pickler.storages


def _parts(storage: SavedStorage) -> Iterator[bytes | memoryview]:
    if skips_data():
        left = storage.nbytes
        while left:
            part = bytes(min(left, _PART))
            left -= len(part)
            yield part
    elif storage.nbytes:
        view = storage.bytes().data
        for start in range(0, len(view), _PART):
            yield view[start : start + _PART]


def _write_record(archive: zipfile.ZipFile, name: str, parts: Any, length: int) -> None:
    entry = zipfile.ZipInfo(name)
    entry.file_size = length
    large = length * 1.05 > zipfile.ZIP64_LIMIT
    before = archive.start_dir + _HEADER + len(name.encode()) + (_LARGE if large else 0)
    gap = -(before + 4) % ALIGNMENT
    entry.extra = _PADDING_TAG + gap.to_bytes(2, "little") + b"Z" * gap
    with archive.open(entry, "w", force_zip64=large) as record:
        for part in parts:
            record.write(part)
