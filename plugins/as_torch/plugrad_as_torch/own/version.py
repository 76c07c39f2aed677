"""`torch.version`: versions of PyTorch and of the libraries it is built with."""

from __future__ import annotations

from plugrad_as_torch.layout import TORCH_VERSION

__all__ = ["__version__", "cuda", "hip", "rocm", "xpu"]

__version__ = TORCH_VERSION
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
