"""The folder of a checkpoint, given by `checkpoint_id` or as one of PyTorch's storage objects."""

from __future__ import annotations

import os
from pathlib import Path

from plugrad_distributed.distributed.checkpoint.errors import CheckpointError
from plugrad_distributed.distributed.checkpoint.index import INDEX

__all__ = ["FileSystemReader", "FileSystemWriter", "folder_of"]


class FileSystemReader:
    """A folder to read checkpoints from.

    Args:
        path: the folder.

    >>> import tempfile, plugrad
    >>> from plugrad.distributed import checkpoint
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint.save({"epoch": 7}, checkpoint_id=folder.name)
    >>> state = {"epoch": 0}
    >>> reader = checkpoint.FileSystemReader(folder.name)
    >>> checkpoint.load(state, storage_reader=reader)
    >>> state
    {'epoch': 7}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def checkpoint_id(self) -> Path:
        """`path`."""
        return self.path


class FileSystemWriter(FileSystemReader):
    """A folder to write checkpoints to. Each rank always writes one file.

    Args:
        path: the folder, which is created.
        overwrite: whether to replace an existing checkpoint.

    >>> import tempfile, plugrad
    >>> from plugrad.distributed import checkpoint
    >>> folder = tempfile.TemporaryDirectory()
    >>> writer = checkpoint.FileSystemWriter(folder.name, overwrite=False)
    >>> checkpoint.save({"epoch": 7}, storage_writer=writer)
    >>> checkpoint.save({"epoch": 8}, storage_writer=writer)
    Traceback (most recent call last):
    plugrad_distributed.distributed.checkpoint.errors.CheckpointError: ... has a checkpoint, and
    overwrite is False
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        super().__init__(path)
        self.overwrite = overwrite


def folder_of(
    function: str,
    checkpoint_id: str | os.PathLike[str] | None,
    storage: FileSystemReader | None,
    argument: str,
) -> Path:
    """The folder of a call.

    Raises:
        TypeError: `storage` is something else.
        ValueError: neither names a folder, or they disagree.
        CheckpointError: the folder has a checkpoint that must not be replaced.
    """
    if storage is None:
        if checkpoint_id is None:
            raise ValueError(f"{function}(): checkpoint_id must be a folder, got None")
        return Path(checkpoint_id)
    if not isinstance(storage, FileSystemReader):
        raise TypeError(
            f"{function}(): {argument} must be a FileSystemReader or FileSystemWriter, got "
            f"{type(storage).__name__}"
        )
    if checkpoint_id is not None and Path(checkpoint_id) != storage.path:
        raise ValueError(
            f"{function}(): checkpoint_id and {argument} must mean one folder, got "
            f"{str(checkpoint_id)!r} and {str(storage.path)!r}"
        )
    replaces = isinstance(storage, FileSystemWriter) and not storage.overwrite
    if replaces and (storage.path / INDEX).exists():
        raise CheckpointError(f"{storage.path} has a checkpoint, and overwrite is False")
    return storage.path
