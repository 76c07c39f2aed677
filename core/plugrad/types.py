"""Types for annotations: what plugrad's functions accept as numbers, devices and files.

>>> from plugrad.types import Number
>>> isinstance(2.5, Number), isinstance("2.5", Number)
(True, False)
"""

from __future__ import annotations

# Interpreted: loaded on demand.
import builtins
import os
from collections.abc import Sequence
from typing import BinaryIO, TypeAlias

from plugrad._tensor.classes import Tensor
from plugrad._torch_names.storage import TypedStorage, UntypedStorage
from plugrad.autograd.graph import GradientEdge
from plugrad.device import Device as _device
from plugrad.tensor.size import Size

__all__ = [
    "BoolLikeType",
    "Device",
    "FileLike",
    "FloatLikeType",
    "IntLikeType",
    "Number",
    "Size",
    "Storage",
    "Tensor",
]


def __dir__() -> list[str]:
    return sorted(__all__)


# Numbers are Python's: plugrad has no symbolic ones.
Number: TypeAlias = int | float | bool
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | BinaryIO
Storage: TypeAlias = TypedStorage | UntypedStorage

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = (
    Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge]
)
