"""save and load: tensors and nested state in the safetensors format, never in pickle.

The safetensors library reads and writes the files. The tensors are ordinary entries, which any
reader of the format finds. What the format has no place for (nesting, tuples, integer keys,
numbers, the order of names) stands as JSON in its metadata, under the key "plugrad".
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

import plugrad
from plugrad import Tensor
from plugrad.plugins import BackendNotFoundError, PluginError

STRUCTURE_KEY = "plugrad"
# The one name that an entry of the format cannot have.
RESERVED_NAME = "__metadata__"

Array = npt.NDArray[Any]
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
            is not text.
        ValueError: `metadata` uses the key "plugrad"; or `obj` contains itself, or is nested too
            deeply.

    >>> import io, plugrad
    >>> file = io.BytesIO()
    >>> plugrad.save({"step": 3, "weight": plugrad.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> plugrad.load(file)
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    arrays: dict[str, Array] = {}
    try:
        structure = json.dumps(_encode(obj, "", arrays, ()))
    except RecursionError:
        raise ValueError("save: the object is nested too deeply") from None
    text = {**_checked(metadata or {}), STRUCTURE_KEY: structure}
    data = safetensors.numpy.save(arrays, metadata=text)
    if isinstance(f, str | os.PathLike):
        _write_atomically(Path(f), data)
    else:
        f.write(data)


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
        ValueError: the file is not in the safetensors format, or damaged.
        TypeError: it holds a dtype that plugrad has not; the message names the entry.
        RuntimeError: a tensor was saved on a device that is not there; `map_location` helps.
    """
    if not weights_only:
        raise ValueError("plugrad.load reads safetensors, never pickle: weights_only must be True")
    arrays, text = _read(f)
    if STRUCTURE_KEY in text:
        return _decode(_structure_of(text[STRUCTURE_KEY], arrays), arrays, map_location)
    return {name: _as_tensor(name, array, map_location) for name, array in arrays.items()}


def read_metadata(f: PathOrFile) -> dict[str, str]:
    """The metadata of a safetensors file that is not plugrad's own."""
    _, text = _read(f)
    return {key: value for key, value in text.items() if key != STRUCTURE_KEY}


def _encode(
    value: Any, path: str, arrays: dict[str, Array], around: tuple[int, ...]
) -> dict[str, Any]:
    """The JSON that stands for `value`; its tensors are added to `arrays`.

    Args:
        around: ids of the containers that `value` is in.
    """
    if isinstance(value, Tensor):
        return _encode_tensor(value, path or "tensor", arrays)
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if id(value) in around:
        raise ValueError(f"save: the object at {path} contains itself")
    inside = (*around, id(value))
    if isinstance(value, Mapping):
        items = []
        for key, item in value.items():
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise TypeError(
                    f"save: dict keys must be str or int, got {type(key).__name__} "
                    f"at {path or 'the top'}"
                )
            items.append([key, _encode(item, _join(path, key), arrays, inside)])
        return {"dict": items}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        parts = enumerate(value)
        return {kind: [_encode(item, _join(path, i), arrays, inside) for i, item in parts]}
    raise TypeError(
        "save: expected tensors, dicts, lists, tuples, numbers, str or None, "
        f"got {type(value).__name__} at {path or 'the top'}"
    )


def _encode_tensor(tensor: Tensor, path: str, arrays: dict[str, Array]) -> dict[str, Any]:
    name = path
    while name in arrays or name == RESERVED_NAME:
        name += "_"
    # The library writes memory as it lies.
    array = np.asarray(tensor.numpy(force=True), order="C")
    node: dict[str, Any] = {"tensor": name}
    if array.dtype == np.complex128:
        # The format stops at complex64: stored as pairs of float64.
        node["complex128"] = True
        array = np.stack([array.real, array.imag], axis=-1)
    if tensor.requires_grad:
        node["requires_grad"] = True
    if tensor.device.type != "cpu":
        node["device"] = str(tensor.device)
    arrays[name] = array
    return node


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _structure_of(text: str, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """What the metadata says of the structure; ValueError if `save` cannot have written it."""
    try:
        node: dict[str, Any] = json.loads(text)
        _check(node, arrays)
    except RecursionError:
        raise ValueError("load: the structure in the file's metadata is too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"load: the structure in the file's metadata is no JSON: {error}"
        ) from None
    return node


def _check(node: object, arrays: Mapping[str, Array]) -> None:
    if not isinstance(node, dict):
        raise _damaged(node)
    if "tensor" in node:
        name, where = node["tensor"], node.get("device", "cpu")
        if not isinstance(name, str) or name not in arrays or not isinstance(where, str):
            raise _damaged(node)
        array = arrays[name]
        pairs = array.dtype == np.float64 and array.ndim > 0 and array.shape[-1] == 2
        if node.get("complex128") and not pairs:
            raise _damaged(node)
        if node.get("requires_grad") and array.dtype.kind in "iub":
            raise _damaged(node)
        return
    for kind in ("dict", "list", "tuple"):
        if kind in node:
            if not isinstance(node[kind], list):
                raise _damaged(node)
            for item in node[kind]:
                if kind == "dict":
                    if not (
                        isinstance(item, list) and len(item) == 2 and isinstance(item[0], str | int)
                    ):
                        raise _damaged(node)
                    item = item[1]
                _check(item, arrays)
            return
    if "value" not in node:
        raise _damaged(node)


def _damaged(node: object) -> ValueError:
    shown = repr(node)
    shown = shown if len(shown) < 60 else shown[:57] + "..."
    return ValueError(f"load: the structure in the file's metadata is damaged at {shown}")


def _decode(node: dict[str, Any], arrays: Mapping[str, Array], device: Any) -> Any:
    if "tensor" in node:
        array = arrays[node["tensor"]]
        if node.get("complex128"):
            array = array.view(np.complex128).reshape(array.shape[:-1])
        tensor = _as_tensor(node["tensor"], array, device, node.get("device", "cpu"))
        return tensor.requires_grad_() if node.get("requires_grad") else tensor
    if "dict" in node:
        return {key: _decode(item, arrays, device) for key, item in node["dict"]}
    if "list" in node:
        return [_decode(item, arrays, device) for item in node["list"]]
    if "tuple" in node:
        return tuple(_decode(item, arrays, device) for item in node["tuple"])
    return node["value"]


def _as_tensor(name: str, array: Array, map_location: Any, saved_on: str = "cpu") -> Tensor:
    try:
        tensor = plugrad.from_numpy(array)
    except TypeError as error:
        raise TypeError(f"load: entry {name!r}: {error}") from error
    if callable(map_location):
        found = map_location(tensor, saved_on)
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
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(
                "save: metadata must be str to str, got "
                f"{type(key).__name__} to {type(value).__name__} at {key!r}"
            )
    if STRUCTURE_KEY in metadata:
        raise ValueError(f"save: the metadata key {STRUCTURE_KEY!r} is taken by the structure")
    return metadata


def _read(f: PathOrFile) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the metadata of a file."""
    if isinstance(f, str | os.PathLike):
        return _read_path(Path(f), str(f))
    # The library opens files by name only.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.safetensors"
        with open(copy, "wb") as target:
            shutil.copyfileobj(f, target)
        return _read_path(copy, getattr(f, "name", "the file"))


def _read_path(path: Path, called: str) -> tuple[dict[str, Array], dict[str, str]]:
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
            return arrays, dict(file.metadata() or {})
    except safetensors.SafetensorError as error:
        raise ValueError(f"load: {called} is not a safetensors file: {error}") from error


def _write_atomically(path: Path, data: bytes) -> None:
    """Readers of `path` see the old file or the whole new one, also after a crash.

    The library's `save_file` reports a full disk as an error of the format, and makes files that
    only their owner can read.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(unfinished, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
