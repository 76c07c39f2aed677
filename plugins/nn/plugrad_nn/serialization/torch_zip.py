"""Reads the zip files that PyTorch writes since 1.6, and `save` with ``format="pt"``."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any, BinaryIO

import numpy as np

import plugrad
from plugrad_nn.serialization.known_names import KnownNames
from plugrad_nn.serialization.opcodes import SafeUnpickler
from plugrad_nn.serialization.options import (
    LoadEndianness,
    get_default_load_endianness,
    skips_data,
)
from plugrad_nn.serialization.rebuilding import Bytes, Rebuilder
from plugrad_nn.serialization.scanning import Scan
from plugrad_nn.serialization.storage_types import STORAGES
from plugrad_nn.serialization.trusted import TrustedUnpickler
from plugrad_nn.serialization.zip_reading import ZipRecords


class StorageIdentifier:
    """A storage's persistent id in a pickle: a tuple of five, after the word "storage".

    Attributes:
        dtype: None if it is untyped.
        key: its name in the file.
        location: the tag of its device.
        nbytes: its size.

    Raises:
        pickle.UnpicklingError: it is no such tuple.
    """

    def __init__(self, identifier: Any) -> None:
        fits = isinstance(identifier, tuple) and len(identifier) >= 5 and identifier[0] == "storage"
        if not fits:
            raise pickle.UnpicklingError("the pickle asks for a storage in a way that is not known")
        _, kind, key, location, count, *self.rest = identifier
        self.dtype = _dtype_of(kind)
        if type(key) is int:
            key = str(key)
        if type(key) is not str or type(location) is not str:
            raise pickle.UnpicklingError("names of storages and their devices must be text")
        if type(count) is not int or not 0 <= count < 2**62:
            raise pickle.UnpicklingError("the length of a storage must be a number of elements")
        self.key: str = key
        self.location: str = location
        self.nbytes: int = count * (1 if self.dtype is None else self.dtype.itemsize)


def _dtype_of(kind: Any) -> plugrad.dtype | None:
    if kind is plugrad.UntypedStorage:
        return None
    for storage in STORAGES.values():
        if kind is storage:
            found: plugrad.dtype = storage.dtype
            return found
    raise pickle.UnpicklingError("the pickle has a storage of a type that is not known")


class ZipStorages:
    """The storages of a zip file; each is read once.

    Args:
        mapped: leave the bytes in the file until they are used.
    """

    def __init__(self, records: ZipRecords, rebuilder: Rebuilder, mapped: bool) -> None:
        self._records = records
        self._rebuilder = rebuilder
        self._mapped = mapped
        self._swapped = _byte_order(records) != sys.byteorder
        self._known: dict[str, tuple[Any, plugrad.dtype | None]] = {}

    def load(self, identifier: Any) -> Any:
        """The storage for a persistent id in the pickle.

        Raises:
            pickle.UnpicklingError: it is not an identifier, or contradicts the file.
            RuntimeError: the file lacks it, or it is damaged.
        """
        wanted = StorageIdentifier(identifier)
        known = self._known.get(wanted.key)
        if known is None:
            data = self._read(wanted)
            swapped = self._swapped
            storage = self._rebuilder.add_storage(data, wanted.dtype, wanted.location, swapped)
            self._known[wanted.key] = storage, wanted.dtype
            return storage
        storage, dtype = known
        if dtype is not wanted.dtype or storage.nbytes() != wanted.nbytes:
            raise pickle.UnpicklingError(f"storage {wanted.key!r} is described in two ways")
        return storage

    def _read(self, wanted: StorageIdentifier) -> Bytes:
        record = f"data/{wanted.key}"
        if self._records.size(record) != wanted.nbytes:
            raise pickle.UnpicklingError(
                f"storage {wanted.key!r} has {self._records.size(record)} bytes in the file, and "
                f"should have {wanted.nbytes}"
            )
        if skips_data() or not wanted.nbytes:
            return np.empty(wanted.nbytes, np.uint8)
        return self._records.mapped(record) if self._mapped else self._records.read(record)


def _byte_order(records: ZipRecords) -> str:
    if "byteorder" in records:
        text = records.read("byteorder").tobytes()
        if text not in (b"little", b"big"):
            raise RuntimeError(f"load: the file has an unknown byte order, {text[:20]!r}")
        return text.decode()
    default = get_default_load_endianness()
    if default is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if default is LoadEndianness.BIG else "little"


def load_zip(
    file: BinaryIO,
    called: str,
    rebuilder: Rebuilder,
    *,
    weights_only: bool,
    mapped: bool,
    options: dict[str, Any],
) -> Any:
    """The object in a zip file of PyTorch's.

    Raises:
        RuntimeError: the file is damaged, or a device does not exist.
        pickle.UnpicklingError: it contains a name that is not allowed.
    """
    records = ZipRecords(file, called)
    if "constants.pkl" in records:
        raise RuntimeError(
            f"load: {called} is a TorchScript archive, which holds a program; in PyTorch, load it "
            "with torch.jit.load and save its state_dict()"
        )
    storages = ZipStorages(records, rebuilder, mapped)
    data = io.BytesIO(records.read("data.pkl").tobytes())
    if weights_only:
        names = KnownNames(rebuilder)
        return SafeUnpickler(data, len(data.getbuffer()), names, storages.load).load()
    return TrustedUnpickler(data, rebuilder, storages.load, **options).load()


def names_in_zip(file: BinaryIO, called: str) -> list[str]:
    """The names that the pickle in a zip file uses."""
    records = ZipRecords(file, called)
    data = records.read("data.pkl").tobytes()
    return list(Scan(io.BytesIO(data), len(data)).names)
