"""save: writes objects in one of the formats that `load` reads."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, BinaryIO, Literal

from plugrad_nn.serialization import legacy_writing, safetensors_files, zip_writing
from plugrad_nn.serialization.paths import PathOrFile, check_writable, path_of, write

Format = Literal["safetensors", "pt"]


def save(
    obj: Any,
    f: PathOrFile,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: Format = "safetensors",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes a tensor, or dicts, lists and tuples of tensors and plain values, to a file.

    Args:
        obj: a tensor, a state dict of a module or an optimizer, or such a nesting. In safetensors
            files, dict keys are strings or integers, and plain values are None, bool, int, float
            and str. In PyTorch files, it can be any object that can be pickled; `load` makes
            tensors, plain containers and numbers of them, and other objects only on request.
        f: a path, which is replaced only when everything is written, or a binary file.
        pickle_module: only Python's pickle is possible.
        pickle_protocol: pickle's, with ``format="pt"``. PyTorch reads protocol 2 for certain.
        format: "safetensors", or "pt": PyTorch's format, which `torch.load` reads. In it, tensors
            that share memory still do so after loading, and parameters stay parameters.
        metadata: further text to store in a safetensors file, which `read_metadata` returns.

    Raises:
        TypeError: `obj` contains an unsupported object, and the message says where; or `metadata`
            is not text; or `f` is neither a path nor a binary file.
        ValueError: `obj` contains itself or is nested more than 100 levels deep; or `metadata`
            uses the key "plugrad", or an argument does not go with the format.
        RuntimeError: with ``format="pt"``, tensors of different dtypes share memory.
        OSError: the path cannot be written; an existing file stays.

    >>> import io, plugrad
    >>> file = io.BytesIO()
    >>> plugrad.save({"step": 3, "weight": plugrad.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> plugrad.load(file)
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    if format not in ("safetensors", "pt"):
        raise ValueError(f"save: format must be 'safetensors' or 'pt', got {format!r}")
    if pickle_module is not pickle:
        name = getattr(pickle_module, "__name__", type(pickle_module).__name__)
        raise ValueError(f"save: pickle_module must be Python's pickle, got {name}")
    check_writable(f)
    if format == "safetensors":
        write(f, safetensors_files.encoded(obj, metadata))
        return
    if metadata is not None:
        raise ValueError("save: metadata goes with format='safetensors' only")
    protocol = pickle_protocol
    if (
        isinstance(protocol, bool)
        or not isinstance(protocol, int)
        or not (2 <= protocol <= pickle.HIGHEST_PROTOCOL)
    ):
        raise ValueError(
            f"save: pickle_protocol must be from 2 to {pickle.HIGHEST_PROTOCOL}, got {protocol!r}"
        )
    write_to: Callable[[BinaryIO], None]
    if _use_new_zipfile_serialization:
        write_to = partial(_write_zip, obj, _folder_for(f), protocol, not _disable_byteorder_record)
    else:
        write_to = partial(legacy_writing.write_legacy, obj, protocol)
    write(f, write_to)


def _write_zip(obj: Any, folder: str, protocol: int, byte_order: bool, file: BinaryIO) -> None:
    zip_writing.write_zip(obj, file, folder, protocol, byte_order)


def _folder_for(f: PathOrFile) -> str:
    """The top folder of a zip file has the file's name, as PyTorch has it."""
    path = path_of(f)
    if path is None:
        return "archive"
    return path.stem.replace("/", "_").encode("ascii", "ignore").decode() or "archive"
