"""save and load: tensors and nested state in the safetensors format, never in pickle.

The safetensors library reads and writes the files. The tensors are ordinary entries, which any
reader of the format finds. What the format has no place for (nesting, tuples, integer keys,
numbers, the order of names) stands as JSON in its metadata, under the key "plugrad".
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import safetensors
import safetensors.numpy

import plugrad
from plugrad import Tensor
from plugrad.plugins import BackendNotFoundError, PluginError
from plugrad_nn.structure import Array, decode, encode

STRUCTURE_KEY = "plugrad"
PathOrFile = str | os.PathLike[str] | BinaryIO


def save(obj: Any, f: PathOrFile, *, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a tensor, or dicts, lists and tuples of tensors and plain values, to a file.

    Args:
        obj: a tensor, a state dict of a module or an optimizer, or such a nesting. Dict keys are
            strings or integers; plain values are None, bool, int, float and str.
        f: a path, which is replaced only when all is written, or a binary file.
        metadata: further text to store, which `read_metadata` gives back.

    Raises:
        TypeError: `obj` holds something that is neither, and the message says where; or `metadata`
            is not text; or `f` is neither a path nor a binary file.
        ValueError: `obj` contains itself or is nested more than 100 levels deep; or `metadata`
            uses the key "plugrad".
        OSError: the path cannot be written; what was there stays.

    >>> import io, plugrad
    >>> file = io.BytesIO()
    >>> plugrad.save({"step": 3, "weight": plugrad.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> plugrad.load(file)
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    path = _path_of(f)
    if path is None and not callable(getattr(f, "write", None)):
        raise TypeError(f"save: f must be a path or a binary file, got {type(f).__name__}")
    structure, arrays = encode(obj)
    text = {**_checked({} if metadata is None else metadata), STRUCTURE_KEY: structure}
    try:
        data = safetensors.numpy.save(arrays, metadata=text)
    except safetensors.SafetensorError as error:
        raise ValueError(f"save: the format has no room for this: {error}") from error
    if path is not None:
        _write(path, data)
        return
    try:
        f.write(data)  # type: ignore[union-attr]  # it is no path
    except TypeError as error:
        raise TypeError(f"save: f must be a binary file, but its write says: {error}") from error


def load(f: PathOrFile, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Reads what `save` wrote, or any other safetensors file as a dict of tensors.

    Args:
        f: a path or a binary file.
        map_location: the device to put the tensors on; a dict from devices they were saved on to
            others; or a function of a tensor on the CPU and the device's name, which returns the
            tensor to use, or None to have it where it was. By default all tensors are where they
            were when they were saved.
        weights_only: accepted because PyTorch programs pass it; only True is possible, since
            nothing that is loaded can run code.

    Raises:
        ValueError: the file is not in the safetensors format, or what `save` adds to it is broken.
        TypeError: it holds a dtype that plugrad has not, and the message names the entry; or `f`
            is neither a path nor a binary file.
        RuntimeError: a tensor was saved on a device that is not there; `map_location` helps.
    """
    if not weights_only:
        raise ValueError("plugrad.load reads safetensors, never pickle: weights_only must be True")
    arrays, text = _read(f)
    if STRUCTURE_KEY in text:

        def make_tensor(name: str, array: Array, saved_on: str) -> Tensor:
            return _as_tensor(name, array, map_location, saved_on)

        return decode(text[STRUCTURE_KEY], arrays, make_tensor)
    return {name: _as_tensor(name, array, map_location) for name, array in arrays.items()}


def read_metadata(f: PathOrFile) -> dict[str, str]:
    """The metadata of a safetensors file that is not plugrad's own."""
    _, text = _read(f)
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


def _path_of(f: PathOrFile) -> Path | None:
    """The path, or None for a file; links lead to the file that is meant."""
    if not isinstance(f, str | os.PathLike):
        return None
    name = os.fsdecode(f)
    if not name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file")
    return Path(os.path.realpath(name))


def _read(f: PathOrFile) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the metadata of a file."""
    path = _path_of(f)
    if path is not None:
        return _read_path(path, os.fsdecode(f))  # type: ignore[arg-type]  # it is a path
    if not callable(getattr(f, "read", None)):
        raise TypeError(f"load: f must be a path or a binary file, got {type(f).__name__}")
    # The library opens files by name only.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.safetensors"
        with open(copy, "wb") as target:
            try:
                shutil.copyfileobj(f, target)  # type: ignore[arg-type]  # it is no path
            except (TypeError, UnicodeDecodeError) as error:
                raise TypeError(
                    f"load: f must be a binary file, but its read says: {error}"
                ) from error
        return _read_path(copy, getattr(f, "name", "the file"))


def _read_path(path: Path, called: str) -> tuple[dict[str, Array], dict[str, str]]:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), called)
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            names = file.keys()
            arrays = {name: _array(path, file, name) for name in names}
            return arrays, dict(file.metadata() or {})
    except safetensors.SafetensorError as error:
        raise ValueError(f"load: {called} is not a safetensors file: {error}") from error


# What the library writes but does not read for NumPy.
_FLOAT8: Final = {"F8_E4M3": plugrad.float8_e4m3fn, "F8_E5M2": plugrad.float8_e5m2}


def _float8_array(path: Path, name: str, dtype: plugrad.dtype) -> Array:
    """An array of 8-bit floats, from the bytes that the header of the file says."""
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
        # The library asks NumPy for the dtype and the shape that are written there.
        raise TypeError(
            f"load: entry {name!r} has a dtype or a shape that NumPy has not: {error}"
        ) from error
    return array


def _write(path: Path, data: bytes) -> None:
    """Readers of `path` see the old file or the whole new one, also after a crash.

    The library's `save_file` reports a full disk as an error of the format, and makes files that
    only their owner can read.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        # A device or a pipe cannot be replaced.
        path.write_bytes(data)
        return
    unfinished = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(unfinished, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
