"""Reads checkpoints: each rank reads the elements that it holds, whichever rank wrote them."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.checkpoint.errors import CheckpointError
from plugrad_distributed.distributed.checkpoint.folders import FileSystemReader, folder_of
from plugrad_distributed.distributed.checkpoint.index import Index, Stored, StoredPiece
from plugrad_distributed.distributed.checkpoint.nesting import (
    entries,
    from_plain,
    is_stateful,
    replace,
)
from plugrad_distributed.distributed.checkpoint.pieces import Piece, pieces_of

__all__ = ["load"]

Array = NDArray[Any]


def load(
    state_dict: MutableMapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read a checkpoint into a state dict, in place.

    Tensors keep their memory, device and placement; these, and the number of ranks, may differ from
    those at the time of writing. Plain values are replaced. Other entries of the checkpoint are
    ignored. Objects with a `load_state_dict`, such as modules and optimizers, get their state
    through it.

    Args:
        state_dict: the entries to read: names, with tensors of the right shapes.
        checkpoint_id: the folder.
        storage_reader: the folder as an object of PyTorch's API; one of the two is enough.
        process_group, no_dist: accepted and ignored: each rank reads by itself.

    Raises:
        CheckpointError: there is no checkpoint, it is broken, or it lacks an entry. If names,
            shapes or dtypes do not fit, nothing is changed.

    >>> import tempfile, plugrad
    >>> from plugrad import nn
    >>> from plugrad.distributed import checkpoint
    >>> folder = tempfile.TemporaryDirectory()
    >>> trained, model = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> checkpoint.save({"model": trained, "epoch": 7}, checkpoint_id=folder.name)
    >>> state = {"model": model, "epoch": 0}
    >>> checkpoint.load(state, checkpoint_id=folder.name)
    >>> bool((model.weight == trained.weight).all()), state["epoch"]
    (True, 7)
    """
    folder = folder_of("load", checkpoint_id, storage_reader, "storage_reader")
    index = Index.read(folder)
    objects = {key: value for key, value in state_dict.items() if is_stateful(value)}
    wanted = {key: objects[key].state_dict() if key in objects else state_dict[key]
              for key in state_dict}  # fmt: skip
    found = list(entries(wanted))
    for name, _, value in found:
        _check(index, name, value)
    with _Files(folder) as files:
        for name, path, value in found:
            if isinstance(value, Tensor):
                for piece in pieces_of(value).local:
                    _fill(name, piece, index.tensors[name], files)
            else:
                replace(wanted, path, from_plain(index.values[name]))
    for key, value in wanted.items():
        if key in objects:
            objects[key].load_state_dict(value)
        else:
            state_dict[key] = value


def _check(index: Index, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        if name not in index.values:
            raise CheckpointError(f"the checkpoint has no value {name!r}{_near(name, index)}")
        return
    stored = index.tensors.get(name)
    if stored is None:
        raise CheckpointError(f"the checkpoint has no tensor {name!r}{_near(name, index)}")
    shape, dtype = list(pieces_of(value).shape), str(value.dtype).rpartition(".")[2]
    if stored.shape != shape:
        raise CheckpointError(
            f"{name!r} is of shape {stored.shape} in the checkpoint, expected {shape}"
        )
    if stored.dtype != dtype:
        raise CheckpointError(
            f"{name!r} is of dtype {stored.dtype} in the checkpoint, expected {dtype}"
        )


def _near(name: str, index: Index) -> str:
    import difflib

    close = difflib.get_close_matches(name, [*index.tensors, *index.values], 1)
    return f"; did you mean {close[0]!r}?" if close else ""


class _Files:
    """The files of a checkpoint, each opened at first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, Any] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._open.values():
            file.__exit__(None, None, None)

    def box(self, piece: StoredPiece, dtype: Any, place: tuple[slice, ...]) -> Array:
        """Elements of a stored piece."""
        file = self._file(piece.file)
        try:
            if piece.raw:
                found: Array = file.get_tensor(piece.key).view(dtype).reshape(piece.shape)[place]
            elif place:
                found = file.get_slice(piece.key)[place]
            else:
                found = file.get_tensor(piece.key)
        except safetensors.SafetensorError as error:
            raise CheckpointError(f"{self._folder / piece.file}: {error}") from error
        return found

    def _file(self, name: str) -> Any:
        if name not in self._open:
            if Path(name).name != name:
                raise CheckpointError(f"the index names a file elsewhere: {name!r}")
            path = self._folder / name
            try:
                self._open[name] = _opened(path)
            except (OSError, safetensors.SafetensorError) as error:
                raise CheckpointError(f"{path} cannot be read: {error}") from error
        return self._open[name]


def _opened(path: Path) -> Any:
    file: Any = safetensors.safe_open(path, framework="numpy")
    return file.__enter__()


def _fill(name: str, piece: Piece, stored: Stored, files: _Files) -> None:
    """Read the elements of a piece from the stored pieces that overlap with it."""
    tensor = piece.tensor
    shape = tuple(tensor.shape)
    dtype = tensor.dtype.numpy
    elements = np.empty(shape, dtype)
    there = 0
    for source in stored.pieces:
        boxes = _common_box(piece.offset, shape, source)
        if boxes is not None:
            own, theirs = boxes
            elements[own] = files.box(source, dtype, theirs)
            there += elements[own].size
    if there != elements.size:
        raise CheckpointError(f"the checkpoint lacks elements of {name!r}")
    with plugrad.no_grad():
        tensor.detach().copy_(plugrad.from_numpy(elements))


def _common_box(
    offset: tuple[int, ...], shape: tuple[int, ...], source: StoredPiece
) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """The intersection of two boxes, as slices of each; None if it is empty."""
    own, theirs = [], []
    for start, size, other, length in zip(offset, shape, source.offset, source.shape, strict=True):
        low, high = max(start, other), min(start + size, other + length)
        if low >= high:
            return None
        own.append(slice(low - start, high - start))
        theirs.append(slice(low - other, high - other))
    return tuple(own), tuple(theirs)
