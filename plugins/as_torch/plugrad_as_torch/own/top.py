"""`torch` itself: its version, `compile`, `save` and `to_dlpack`."""

from __future__ import annotations

from plugrad_as_torch.layout import TORCH_VERSION
from plugrad_as_torch.own.compiling import compile
from plugrad_as_torch.own.dlpack import to_dlpack
from plugrad_as_torch.own.files import save
from plugrad_as_torch.own.torch_version import TorchVersion

__all__ = ["__version__", "compile", "save", "to_dlpack"]

__version__ = TorchVersion(TORCH_VERSION)
