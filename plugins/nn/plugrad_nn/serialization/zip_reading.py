"""The records in a zip file of PyTorch's: their positions, checks, and bytes."""

from __future__ import annotations

import mmap
import struct
import zipfile
import zlib
from typing import Any, BinaryIO, Final, NoReturn

import numpy as np
import numpy.typing as npt

from plugrad_nn.serialization.options import get_crc32_options, writes_to_the_file

Bytes = npt.NDArray[np.uint8]

_LOCAL_HEADER: Final = struct.Struct("<4sHHHHHIIIHH")
# Zip stores long runs of zeros in a thousandth; larger ratios do not occur in useful files.
LARGEST_RATIO: Final = 200
_ENCRYPTED: Final = 0x1


class ZipRecords:
    """The records of a zip file, by their names within its one top folder.

    Args:
        file: the file, which stays open while records are read.
        called: its name, for messages.

    Raises:
        RuntimeError: it is not a whole zip file, or not one of PyTorch's.
    """

    def __init__(self, file: BinaryIO, called: str) -> None:
        self._file = file
        self._called = called
        self._mapping: mmap.mmap | None = None
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                start = archive.start_dir
        except (
            zipfile.BadZipFile,
            OSError,
            ValueError,
            NotImplementedError,
            struct.error,
        ) as error:
            self._fail(f"the directory at its end cannot be read: {error}")
        except (EOFError, IndexError, OverflowError, MemoryError) as error:
            self._fail(f"the directory at its end is damaged: {error}")
        folders = {entry.filename.partition("/")[0] for entry in entries}
        self._entries = {entry.filename.partition("/")[2]: entry for entry in entries}
        if "data.pkl" not in self._entries:
            raise RuntimeError(
                f"load: {called} is a zip file, but none that PyTorch or plugrad has written: it "
                "has no record data.pkl"
            )
        if len(folders) > 1 or len(self._entries) < len(entries):
            self._fail("it has several folders, or one record twice")
        self._check_sizes(start)

    def names(self) -> list[str]:
        """The names of the records."""
        return list(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def size(self, name: str) -> int:
        """How long a record is.

        Raises:
            RuntimeError: there is none of this name.
        """
        return self._entry(name).file_size

    def read(self, name: str) -> Bytes:
        """The bytes of a record, copied to new memory.

        Raises:
            RuntimeError: there is none of this name, or it is damaged.
        """
        entry = self._entry(name)
        offset = self._offset(entry)
        self._file.seek(offset)
        data: Bytes
        if entry.compress_type == zipfile.ZIP_STORED:
            data = np.empty(entry.file_size, np.uint8)
            self._fill(data, name)
        else:
            data = self._unpacked(entry, name)
        self._check_sum(entry, data, name)
        return data

    def mapped(self, name: str) -> Bytes:
        """The bytes of a record, as part of the file: they are read when they are used.

        Raises:
            RuntimeError: there is none of this name, or it is compressed.
        """
        entry = self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED:
            raise RuntimeError(f"load: mmap=True needs records that are not compressed, as {name}")
        offset = self._offset(entry)
        mapping: Any = self._whole_mapping()
        if offset + entry.file_size > len(mapping):
            self._fail(f"record {name!r} is cut off")
        return np.frombuffer(mapping, np.uint8, entry.file_size, offset)

    def _whole_mapping(self) -> mmap.mmap:
        if self._mapping is None:
            shared = writes_to_the_file()
            with open(self._file.name, "r+b" if shared else "rb") as file:
                access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
                self._mapping = mmap.mmap(file.fileno(), 0, access=access)
        return self._mapping

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self._entries.get(name)
        if entry is None:
            self._fail(f"there is no record {name!r}")
        return entry

    def _check_sizes(self, start: int) -> None:
        """Nothing that the file promises may take much more memory than the file."""
        for name, entry in self._entries.items():
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                self._fail(f"record {name!r} is packed in a way that PyTorch does not use")
            if entry.flag_bits & _ENCRYPTED:
                self._fail(f"record {name!r} is encrypted")
            stored = entry.compress_type == zipfile.ZIP_STORED
            if stored and entry.file_size != entry.compress_size:
                self._fail(f"record {name!r} has two different sizes")
        packed = sum(entry.compress_size for entry in self._entries.values())
        unpacked = sum(entry.file_size for entry in self._entries.values())
        if packed > start:
            self._fail("its records overlap, or it is cut off")
        if unpacked > LARGEST_RATIO * max(start, 1):
            self._fail(f"its records unpack to {unpacked} bytes, more than is plausible")

    def _offset(self, entry: zipfile.ZipInfo) -> int:
        """Where the bytes of a record begin."""
        self._file.seek(entry.header_offset)
        header = self._file.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size:
            self._fail(f"the header of record {entry.filename!r} is cut off")
        signature, *_, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        name = self._file.read(name_length)
        if signature != b"PK\x03\x04" or name != entry.orig_filename.encode("utf-8"):
            self._fail(f"record {entry.filename!r} is not where the directory says")
        return entry.header_offset + _LOCAL_HEADER.size + int(name_length) + int(extra_length)

    def _fill(self, data: Bytes, name: str) -> None:
        view = data.data
        done = 0
        into = getattr(self._file, "readinto", None)
        while done < len(view):
            if into is not None:
                count = into(view[done:])
            else:
                part = self._file.read(len(view) - done)
                count = len(part)
                view[done : done + count] = part
            if not count:
                self._fail(f"record {name!r} is cut off")
            done += count

    def _unpacked(self, entry: zipfile.ZipInfo, name: str) -> Bytes:
        machine = zlib.decompressobj(-zlib.MAX_WBITS)
        packed = np.empty(entry.compress_size, np.uint8)
        self._fill(packed, name)
        try:
            text = machine.decompress(packed.data, entry.file_size + 1)
        except zlib.error as error:
            self._fail(f"record {name!r} cannot be unpacked: {error}")
        if len(text) != entry.file_size:
            self._fail(f"record {name!r} unpacks to another size than the directory says")
        return np.frombuffer(bytearray(text), np.uint8)

    def _check_sum(self, entry: zipfile.ZipInfo, data: Bytes, name: str) -> None:
        # 0 means that PyTorch computed no checksum, as requested.
        if entry.CRC and get_crc32_options() and zlib.crc32(data.data) != entry.CRC:
            self._fail(f"record {name!r} does not have the checksum that it was written with")

    def _fail(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"load: failed reading zip archive: {self._called}: {what}. The file was cut off or "
            "changed after it was written"
        )
