"""Settings of `save` and `load` besides arguments: byte order, checksums, mapping, skipping."""

from __future__ import annotations

import contextlib
import enum
import mmap
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Final


class LoadEndianness(enum.Enum):
    """The byte order of files that do not declare one.

    >>> import plugrad
    >>> plugrad.serialization.LoadEndianness.BIG
    <LoadEndianness.BIG: 3>
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Settings:
    """The options of the process."""

    endianness: LoadEndianness | None = None
    crc32 = True
    mmap_flags: int | None = getattr(mmap, "MAP_PRIVATE", None)


_skipping: Final[ContextVar[bool]] = ContextVar("skip_data", default=False)


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files without a record of it; None means little endian.

    >>> import plugrad
    >>> plugrad.serialization.get_default_load_endianness() is None
    True
    """
    return _Settings.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files without a record of it: those that PyTorch wrote before 2.1.

    Args:
        endianness: a `LoadEndianness`, or None for little endian.

    Raises:
        TypeError: neither a `LoadEndianness` nor None.

    >>> import plugrad
    >>> files = plugrad.serialization
    >>> files.set_default_load_endianness(files.LoadEndianness.BIG)
    >>> files.get_default_load_endianness()
    <LoadEndianness.BIG: 3>
    >>> files.set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Settings.endianness = endianness


def get_crc32_options() -> bool:
    """Whether checksums are computed: see `set_crc32_options`.

    >>> import plugrad
    >>> plugrad.serialization.get_crc32_options()
    True
    """
    return _Settings.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether `save` writes checksums of the data, and `load` compares them.

    Without, both are faster, and damage to a file is not noticed.

    Args:
        compute_crc32: whether there are checksums; True at first.

    >>> import plugrad
    >>> plugrad.serialization.set_crc32_options(False)
    >>> plugrad.serialization.get_crc32_options()
    False
    >>> plugrad.serialization.set_crc32_options(True)
    """
    _Settings.crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """The flags of the mapping that `load` makes with ``mmap=True``.

    >>> import mmap, plugrad
    >>> plugrad.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    True
    """
    return _Settings.mmap_flags


class set_default_mmap_options:
    """Set whether tensors that are loaded with ``mmap=True`` write to the file.

    It is a context manager, too: then for the block only.

    Args:
        flags: `mmap.MAP_PRIVATE`, the default: writes stay in this process; or
            `mmap.MAP_SHARED`: it goes to the file.

    Raises:
        RuntimeError: the system has no such flags.
        ValueError: other flags.

    >>> import mmap, plugrad
    >>> with plugrad.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     plugrad.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if _Settings.mmap_flags is None:
            raise RuntimeError("Changing the default mmap options is currently not supported here")
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self._before = _Settings.mmap_flags
        _Settings.mmap_flags = flags

    def __enter__(self) -> None:
        """The flags are set already."""

    def __exit__(self, *_: Any) -> None:
        _Settings.mmap_flags = self._before


def writes_to_the_file() -> bool:
    """Whether ``mmap=True`` means a mapping that is shared with the file."""
    return _Settings.mmap_flags is not None and _Settings.mmap_flags != mmap.MAP_PRIVATE


@contextlib.contextmanager
def skip_data(materialize_fake_tensors: bool = False) -> Iterator[None]:
    """Context manager: `save` reserves space for the elements of tensors without writing them, and
    `load` does not read them. Both apply only to the format "pt". Elements that were not written
    are zeros; elements that were not read have arbitrary values.

    Args:
        materialize_fake_tensors: accepted because PyTorch has it; there are no fake tensors.

    >>> import io, plugrad
    >>> file = io.BytesIO()
    >>> with plugrad.serialization.skip_data():
    ...     plugrad.save({"w": plugrad.ones(2)}, file, format="pt")
    >>> _ = file.seek(0)
    >>> plugrad.load(file)
    {'w': tensor([0., 0.])}
    """
    token = _skipping.set(True)
    try:
        yield
    finally:
        _skipping.reset(token)


def skips_data() -> bool:
    """Whether this is within `skip_data`."""
    return _skipping.get()
