"""`torch` itself: its version, `compile`, `save`, and names that only PyTorch has."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

import plugrad
from plugrad_as_torch.layout import TORCH_VERSION
from plugrad_as_torch.own.compilers.compiling import compile
from plugrad_as_torch.own.dlpack import to_dlpack
from plugrad_as_torch.own.files import save
from plugrad_as_torch.own.torch_version import TorchVersion

__all__ = [
    "OutOfMemoryError",
    "__version__",
    "_assert",
    "compile",
    "get_device_module",
    "is_autocast_enabled",
    "layout",
    "save",
    "to_dlpack",
]

__version__ = TorchVersion(TORCH_VERSION)


# Device types that have autocast in PyTorch but no backend in plugrad.
_AUTOCAST_ELSEWHERE: Final = frozenset({"hpu", "ipu", "maia", "mps", "mtia", "xla", "xpu"})


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """`plugrad.is_autocast_enabled`, and False for devices that only PyTorch has.

    >>> is_autocast_enabled("mps")
    False
    """
    return device_type not in _AUTOCAST_ELSEWHERE and plugrad.is_autocast_enabled(device_type)


def _assert(condition: Any, message: Any) -> None:
    """Raises AssertionError with the message unless the condition is true; it may be a tensor."""
    if not condition:
        raise AssertionError(message)


class OutOfMemoryError(RuntimeError):
    """The error that PyTorch raises when a GPU's memory is full."""


class _LayoutType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return instance is plugrad.strided


class layout(metaclass=_LayoutType):
    """The type of `torch.strided`, the layout that all tensors have."""


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device type: `torch.cuda` for `"cuda"`.

    Raises:
        RuntimeError: the type has no module.
    """
    import importlib

    from plugrad_as_torch.lookup import has_module

    if device is None:
        device = "cuda" if plugrad.cuda.is_available() else "cpu"
    name = f"torch.{plugrad.device(device).type}"
    if not has_module(name):
        raise RuntimeError(f"Invalid device: module 'torch' has no attribute '{name[6:]}'")
    return importlib.import_module(name)
