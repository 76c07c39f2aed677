"""The files that `save` and `load` are given: paths, file objects, and atomic writing."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

PathOrFile = str | os.PathLike[str] | BinaryIO


def path_of(f: PathOrFile) -> Path | None:
    """The path, or None for a file; links lead to the file that is meant."""
    if not isinstance(f, str | os.PathLike):
        return None
    name = os.fsdecode(f)
    if not name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file")
    return Path(os.path.realpath(name))


def called(f: PathOrFile) -> str:
    """The name of a file in messages."""
    if isinstance(f, str | os.PathLike):
        return os.fsdecode(f)
    name = getattr(f, "name", None)
    return name if isinstance(name, str) else "the file"


@contextlib.contextmanager
def opened(f: PathOrFile) -> Iterator[BinaryIO]:
    """A seekable binary file, read from its current position.

    Raises:
        TypeError: `f` is neither a path nor a binary file.
        OSError: the path cannot be read.
    """
    path = path_of(f)
    if path is not None:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), called(f))
        try:
            file = path.open("rb")
        except OSError as error:
            raise type(error)(error.errno, error.strerror, called(f)) from None
        with file:
            yield file
        return
    source: Any = f
    if not callable(getattr(source, "read", None)):
        raise TypeError(f"load: f must be a path or a binary file, got {type(f).__name__}")
    yield _seekable(source)


def _seekable(source: Any) -> BinaryIO:
    """The file itself, or a copy of its rest."""
    try:
        nothing = source.read(0)
        seekable = hasattr(source, "seek") and hasattr(source, "tell")
        if seekable and callable(getattr(source, "seekable", None)):
            seekable = source.seekable()
        if isinstance(nothing, bytes) and seekable:
            return cast(BinaryIO, source)
        return io.BytesIO(source.read())
    except (TypeError, UnicodeDecodeError) as error:
        raise TypeError(f"load: f must be a binary file, but its read says: {error}") from error


def length_of(file: BinaryIO) -> int:
    """How many bytes are left in a file."""
    here = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(here)
    return (file.tell() if end is None else end) - here


def write(f: PathOrFile, write_to: Callable[[BinaryIO], None]) -> None:
    """Let a function write a file. A path is replaced only when all is written.

    Raises:
        TypeError: `f` is neither a path nor a binary file.
        OSError: the path cannot be written; an existing file stays.
    """
    path = path_of(f)
    if path is not None:
        _write_path(path, write_to)
        return
    target: Any = f
    try:
        target.write(b"")
    except TypeError as error:
        raise TypeError(f"save: f must be a binary file, but its write says: {error}") from error
    write_to(target)


def check_writable(f: PathOrFile) -> None:
    """Raise TypeError if `f` is neither a path nor a file."""
    if path_of(f) is None and not callable(getattr(f, "write", None)):
        raise TypeError(f"save: f must be a path or a binary file, got {type(f).__name__}")


def _write_path(path: Path, write_to: Callable[[BinaryIO], None]) -> None:
    """Readers of `path` see the old file or the whole new one, also after a crash."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        # A device or a pipe cannot be replaced.
        with open(path, "wb") as file:
            write_to(file)
        return
    unfinished = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(unfinished, "xb") as file:
            write_to(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
