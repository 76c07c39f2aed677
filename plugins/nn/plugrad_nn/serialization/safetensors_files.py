"""Reads and writes safetensors files, with the library of that name.

The tensors are ordinary entries, which any reader of the format finds. Everything that the format
cannot store (nesting, tuples, integer keys, numbers, the order of names) is JSON in its metadata,
under the key "plugrad".
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import safetensors
import safetensors.numpy

import plugrad
from plugrad import Tensor
from plugrad.plugins import BackendNotFoundError, PluginError
from plugrad_nn.serialization.paths import PathOrFile, called, opened
from plugrad_nn.serialization.structure import Array, decode, encode

STRUCTURE_KEY = "plugrad"


def encoded(obj: Any, metadata: Mapping[str, str] | None) -> Callable[[BinaryIO], None]:
    """A function that writes an object to a file, made after a check that everything fits the
    format.

    Raises:
        TypeError: `obj` contains something that cannot be stored, or `metadata` is not text.
        ValueError: `obj` contains itself or is nested too deep; or `metadata` uses our key.
    """
    structure, arrays = encode(obj)
    text = {**_checked({} if metadata is None else metadata), STRUCTURE_KEY: structure}
    try:
        data = safetensors.numpy.save(arrays, metadata=text)
    except safetensors.SafetensorError as error:
        raise ValueError(f"save: the format has no room for this: {error}") from error

    def write_to(file: BinaryIO) -> None:
        file.write(data)

    return write_to


def load(file: BinaryIO, name: str, map_location: Any) -> Any:
    """The contents of a safetensors file: a dict of tensors, or the object passed to `save`.

    Raises:
        ValueError: the file is broken.
        TypeError: it holds a dtype that plugrad has not.
        RuntimeError: a tensor was saved on a device that does not exist here.
    """
    arrays, text = _read(file, name)
    if STRUCTURE_KEY in text:

        def make_tensor(name: str, array: Array, saved_on: str) -> Tensor:
            return _as_tensor(name, array, map_location, saved_on)

        return decode(text[STRUCTURE_KEY], arrays, make_tensor)
    return {name: _as_tensor(name, array, map_location) for name, array in arrays.items()}


def read_metadata(f: PathOrFile) -> dict[str, str]:
    """The metadata of a safetensors file that is not plugrad's own.

    Args:
        f: a path or a binary file.

    >>> import io, plugrad
    >>> file = io.BytesIO()
    >>> plugrad.save({"w": plugrad.ones(1)}, file, metadata={"accuracy": "0.98"})
    >>> _ = file.seek(0)
    >>> plugrad.serialization.read_metadata(file)
    {'accuracy': '0.98'}
    """
    with opened(f) as file:
        _, text = _read(file, called(f))
    return {key: value for key, value in text.items() if key != STRUCTURE_KEY}


def _as_tensor(name: str, array: Array, map_location: Any, saved_on: str = "cpu") -> Tensor:
    try:
        tensor = plugrad.from_numpy(array)
    except TypeError as error:
        raise TypeError(f"load: entry {name!r}: {error}") from error
    if callable(map_location):
        found = map_location(tensor, saved_on)
        if found is not None and not isinstance(found, Tensor):
            raise TypeError(
                f"load: map_location must return a Tensor or None, got {type(found).__name__}"
            )
        return _restored(tensor, saved_on) if found is None else found
    if isinstance(map_location, Mapping):
        map_location = map_location.get(saved_on)
    return _restored(tensor, saved_on) if map_location is None else tensor.to(map_location)


def _restored(tensor: Tensor, saved_on: str) -> Tensor:
    """The tensor on the device that it was saved on."""
    if saved_on == "cpu":
        return tensor
    try:
        return tensor.to(saved_on)
    except (BackendNotFoundError, PluginError) as error:
        raise RuntimeError(
            f"Attempting to deserialize object on a {saved_on.partition(':')[0]} device but there "
            "is none. If you are running on a CPU-only machine, please use plugrad.load with "
            "map_location=plugrad.device('cpu') to map your storages to the CPU. " + str(error)
        ) from error
    except RuntimeError as error:
        raise RuntimeError(
            f"Attempting to deserialize object on device {saved_on} but: {error}. Please use "
            "plugrad.load with map_location to map your storages to an existing device."
        ) from error


def _checked(metadata: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(metadata, Mapping):
        raise TypeError(f"save: metadata must be a mapping, got {type(metadata).__name__}")
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(
                "save: metadata must be str to str, got "
                f"{type(key).__name__} to {type(value).__name__} at {key!r}"
            )
    if STRUCTURE_KEY in metadata:
        raise ValueError(f"save: the metadata key {STRUCTURE_KEY!r} is taken by the structure")
    return metadata


def _read(file: BinaryIO, name: str) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the metadata of a file."""
    path = getattr(file, "name", None)
    if isinstance(path, str) and file.tell() == 0 and Path(path).is_file():
        return _read_path(Path(path), name)
    # The library opens files by name only.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.safetensors"
        with open(copy, "wb") as target:
            shutil.copyfileobj(file, target)
        return _read_path(copy, name)


def _read_path(path: Path, called: str) -> tuple[dict[str, Array], dict[str, str]]:
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            names = file.keys()
            arrays = {name: _array(path, file, name) for name in names}
            return arrays, dict(file.metadata() or {})
    except safetensors.SafetensorError as error:
        raise ValueError(f"load: {called} is not a safetensors file: {error}") from error


# dtypes that the library writes but does not read for NumPy.
_FLOAT8: Final = {"F8_E4M3": plugrad.float8_e4m3fn, "F8_E5M2": plugrad.float8_e5m2}


def _float8_array(path: Path, name: str, dtype: plugrad.dtype) -> Array:
    """An array of 8-bit floats, from the bytes at the place in the file's header."""
    with path.open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(header))[name]
        start, stop = entry["data_offsets"]
        file.seek(8 + header + start)
        data = bytearray(file.read(stop - start))
    return np.frombuffer(data, dtype.numpy).reshape(entry["shape"])


def _array(path: Path, file: Any, name: str) -> Array:
    try:
        float8 = _FLOAT8.get(file.get_slice(name).get_dtype())
        if float8 is not None:
            return _float8_array(path, name, float8)
        array: Array = file.get_tensor(name)
    except safetensors.SafetensorError:
        raise
    except Exception as error:
        # The library passes the dtype and the shape in the file to NumPy.
        raise TypeError(
            f"load: entry {name!r} has a dtype or a shape that NumPy does not support: {error}"
        ) from error
    return array
