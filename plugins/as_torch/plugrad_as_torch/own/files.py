"""`torch.save`, which writes PyTorch's format, and what exists only in `torch.serialization`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import plugrad

__all__ = ["DEFAULT_PROTOCOL", "MAP_LOCATION", "SourceChangeWarning", "save"]

DEFAULT_PROTOCOL: Final = 2
# Where `torch.load` puts what it reads.
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | plugrad.device | str | dict[str, str] | None


class SourceChangeWarning(Warning):
    """PyTorch's warning about modules in old files with changed source; never given here."""


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
