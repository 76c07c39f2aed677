"""Reads and writes the files that PyTorch wrote before 1.6: pickles, then the bytes of storages.

A file is a magic number, the version of the format, a dict about the machine, the object, and the
names of its storages, all pickled; then, for each storage, how many elements it has and its bytes.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, BinaryIO, Final

import numpy as np

from plugrad_nn.serialization.known_names import KnownNames
from plugrad_nn.serialization.opcodes import SafeUnpickler
from plugrad_nn.serialization.options import skips_data
from plugrad_nn.serialization.paths import length_of
from plugrad_nn.serialization.rebuilding import Bytes, Rebuilder
from plugrad_nn.serialization.scanning import Placeholder, Scan
from plugrad_nn.serialization.storage_types import STORAGES
from plugrad_nn.serialization.torch_zip import StorageIdentifier
from plugrad_nn.serialization.trusted import TrustedUnpickler

MAGIC_NUMBER: Final = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION: Final = 1001


class _Storages:
    """The positions of a file's storages, and the loaded storages.

    Args:
        places: the first byte and the length, by key.
    """

    def __init__(
        self, file: BinaryIO, rebuilder: Rebuilder, places: dict[str, tuple[int, int]]
    ) -> None:
        self._file = file
        self._rebuilder = rebuilder
        self._places = places
        self._bytes: dict[str, Bytes] = {}
        self._known: dict[Any, Any] = {}

    def load(self, identifier: Any) -> Any:
        """The storage for a persistent id in the pickle."""
        wanted = StorageIdentifier(identifier)
        view = wanted.rest[0] if wanted.rest else None
        key = (wanted.key, None if view is None else str(view), wanted.dtype)
        if key not in self._known:
            data = self._part(wanted, view)
            swapped = sys.byteorder != "little"
            self._known[key] = self._rebuilder.add_storage(
                data, wanted.dtype, wanted.location, swapped
            )
        return self._known[key]

    def _part(self, wanted: StorageIdentifier, view: Any) -> Bytes:
        whole = self._whole(wanted.key)
        if len(whole) != wanted.nbytes:
            raise pickle.UnpicklingError(
                f"storage {wanted.key!r} has {len(whole)} bytes in the file, and should have "
                f"{wanted.nbytes}"
            )
        if view is None:
            return whole
        fits = isinstance(view, tuple) and len(view) == 3
        if not fits or not all(type(n) is int and n >= 0 for n in view[1:]):
            raise pickle.UnpicklingError("a part of a storage needs an offset and a size")
        size = 1 if wanted.dtype is None else wanted.dtype.itemsize
        part = whole[view[1] * size : (view[1] + view[2]) * size]
        if len(part) != view[2] * size:
            raise pickle.UnpicklingError("a part of a storage lies outside of it")
        return part

    def _whole(self, key: str) -> Bytes:
        """The bytes of a storage, which its parts share."""
        if key not in self._places:
            raise pickle.UnpicklingError(f"there is no storage {key!r} in the file")
        if key not in self._bytes:
            start, count = self._places[key]
            data = np.empty(count, np.uint8)
            if not skips_data():
                self._file.seek(start)
                text = self._file.read(count)
                if len(text) != count:
                    raise EOFError(f"storage {key!r} is cut off")
                data[:] = np.frombuffer(text, np.uint8)
            self._bytes[key] = data
        return self._bytes[key]


def load_legacy(
    file: BinaryIO,
    called: str,
    rebuilder: Rebuilder,
    *,
    weights_only: bool,
    options: dict[str, Any],
) -> Any:
    """The object in a file of the old format; afterwards the file's position is after it.

    Raises:
        RuntimeError: the file has another format, or a device does not exist.
        EOFError: it is cut off.
        pickle.UnpicklingError: it is damaged, or contains a name that is not allowed.
    """
    _read_head(file, called)
    start = file.tell()
    identifiers = Scan(file, length_of(file)).identifiers
    places, end = _places(file, identifiers)
    file.seek(start)
    storages = _Storages(file, rebuilder, places)
    # Storages are read in between.
    data: Any = _Reader(file)
    found: Any
    if weights_only:
        names = KnownNames(rebuilder)
        found = SafeUnpickler(data, length_of(file), names, storages.load).load()
    else:
        found = TrustedUnpickler(data, rebuilder, storages.load, **options).load()
    file.seek(end)
    return found


def names_in_legacy(file: BinaryIO, called: str) -> list[str]:
    """The names that the object in a file of the old format uses."""
    _read_head(file, called)
    return list(Scan(file, length_of(file)).names)


class _Reader:
    """The methods of a file that unpicklers use, with its own position, because others move the
    file's."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._place = file.tell()

    def read(self, count: int = -1, /) -> bytes:
        self._file.seek(self._place)
        data = self._file.read(count)
        self._place += len(data)
        return data

    def readline(self, limit: int = -1, /) -> bytes:
        self._file.seek(self._place)
        data = self._file.readline(limit)
        self._place += len(data)
        return data


def _read_head(file: BinaryIO, called: str) -> None:
    def plain() -> Any:
        return SafeUnpickler(file, length_of(file), _NoNames()).load()

    if plain() != MAGIC_NUMBER:
        raise RuntimeError(f"load: {called}: Invalid magic number; corrupt file?")
    version = plain()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"load: {called}: Invalid protocol version: {version}")
    plain()


def _places(file: BinaryIO, identifiers: list[Any]) -> tuple[dict[str, tuple[int, int]], int]:
    """The first byte and the length of each storage, and where the last one ends."""
    sizes: dict[str, int] = {}
    for identifier in identifiers:
        if isinstance(identifier, tuple) and len(identifier) >= 5:
            kind, key = identifier[1:3]
            if isinstance(kind, Placeholder) and type(key) is str:
                sizes[key] = _item_size(kind.name)
    keys = SafeUnpickler(file, length_of(file), _NoNames()).load()
    if not isinstance(keys, list) or not all(type(key) is str for key in keys):
        raise pickle.UnpicklingError("expected a list of the names of storages")
    end = file.tell() + length_of(file)
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        count = int.from_bytes(_exactly(file, 8), "little", signed=True)
        if key not in sizes or count < 0:
            raise pickle.UnpicklingError(f"storage {key!r} is not one that the object has")
        start, nbytes = file.tell(), count * sizes[key]
        if start + nbytes > end:
            raise EOFError(f"storage {key!r} is cut off: {nbytes} bytes, {end - start} are there")
        places[key] = start, nbytes
        file.seek(nbytes, os.SEEK_CUR)
    return places, file.tell()


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise EOFError("the file is cut off before the bytes of a storage")
    return data


def _item_size(name: str) -> int:
    storage = STORAGES.get(name.rpartition(".")[2])
    return 1 if storage is None else int(storage.dtype.itemsize)


class _NoNames:
    """For pickles of numbers, text and plain containers."""

    def _refuse(self, *args: Any) -> Any:
        raise pickle.UnpicklingError("the head of the file is no plain data")

    find = call = new = set_state = _refuse

    def is_allowed_type(self, cls: type) -> bool:
        """No class is."""
        return False
