"""The index of a checkpoint: its tensors, and where their pieces are."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plugrad_distributed.distributed.checkpoint.errors import CheckpointError

__all__ = ["INDEX", "Index", "Stored", "StoredPiece", "put_in_place", "write_at_once"]

INDEX = "index.json"
FORMAT = "plugrad.distributed.checkpoint"
VERSION = 1


@dataclass
class StoredPiece:
    """A box of a tensor's elements, stored in a file.

    Attributes:
        offset, shape: the box.
        file, key: where they are.
        raw: whether they are stored as bytes, because the format lacks the dtype.
    """

    offset: list[int]
    shape: list[int]
    file: str
    key: str
    raw: bool = False


@dataclass
class Stored:
    """A tensor in a checkpoint."""

    shape: list[int]
    dtype: str
    pieces: list[StoredPiece] = field(default_factory=list)


@dataclass
class Index:
    """The contents of a checkpoint; `values` are plain values by name."""

    tensors: dict[str, Stored] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def merge(self, other: Index) -> None:
        """Add the entries of another rank.

        Raises:
            CheckpointError: ranks do not agree on a tensor's shape or dtype.
        """
        for name, stored in other.tensors.items():
            own = self.tensors.setdefault(name, Stored(stored.shape, stored.dtype))
            if (own.shape, own.dtype) != (stored.shape, stored.dtype):
                raise CheckpointError(
                    f"ranks do not agree on {name!r}: {own.dtype} {own.shape} and {stored.dtype} "
                    f"{stored.shape}"
                )
            # A piece that several ranks hold counts only once.
            places = [piece.offset for piece in own.pieces]
            own.pieces += [piece for piece in stored.pieces if piece.offset not in places]
        for name, value in other.values.items():
            self.values.setdefault(name, value)

    def check_whole(self) -> None:
        """CheckpointError if elements of a tensor are missing."""
        for name, stored in self.tensors.items():
            there = sum(math.prod(piece.shape) for piece in stored.pieces)
            if there != math.prod(stored.shape):
                raise CheckpointError(
                    f"{there} of {math.prod(stored.shape)} elements of {name!r} were written: the "
                    "pieces that ranks hold do not make up the tensor"
                )

    def text(self) -> str:
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)})

    @staticmethod
    def from_text(text: str, path: Path) -> Index:
        """Raises CheckpointError if the text is not an index."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT or found["version"] > VERSION:
                raise CheckpointError(
                    f"{path} is of format {found['format']!r}, version {found['version']}; "
                    f"expected {FORMAT!r}, version {VERSION} at most"
                )
            tensors = {
                name: Stored(
                    list(stored["shape"]),
                    str(stored["dtype"]),
                    [StoredPiece(**piece) for piece in stored["pieces"]],
                )
                for name, stored in found["tensors"].items()
            }
            return Index(tensors, dict(found["values"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} is not an index of a checkpoint: {error!r}") from error

    @staticmethod
    def read(folder: Path) -> Index:
        """The index of a folder.

        Raises:
            CheckpointError: there is none, or it is broken.
        """
        path = folder / INDEX
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise CheckpointError(
                f"there is no checkpoint in {folder}: it has no {INDEX}"
            ) from None
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error}") from error
        return Index.from_text(text, path)


def write_at_once(path: Path, data: bytes) -> None:
    """Write a file atomically, even if power is lost."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(data)
    put_in_place(partial, path)


def put_in_place(partial: Path, path: Path) -> None:
    """Rename a written file to its final name, once it is on the disk."""
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # the system cannot open folders
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
