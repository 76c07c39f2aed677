"""`torch.save`, whose format is PyTorch's; and what is in `torch.serialization` only."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import IO, Any, Final, TypeAlias

import plugrad

__all__ = ["DEFAULT_PROTOCOL", "FILE_LIKE", "MAP_LOCATION", "SourceChangeWarning", "save"]

DEFAULT_PROTOCOL: Final = 2
# What `torch.load` takes: where from, and where to.
FILE_LIKE: TypeAlias = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION: TypeAlias = (
    Callable[[Any, str], Any] | plugrad.device | str | dict[str, str] | None
)


class SourceChangeWarning(Warning):
    """PyTorch warns so of modules in old files whose source has changed; here nothing does."""


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """`plugrad.save` in the format "pt", which PyTorch reads, too."""
    plugrad.save(
        obj,
        f,
        pickle_module,
        pickle_protocol,
        _use_new_zipfile_serialization,
        _disable_byteorder_record,
        format="pt",
    )
