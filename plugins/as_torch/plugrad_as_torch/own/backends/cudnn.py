"""`torch.backends.cudnn`: its switches for a block. CuPy controls cuDNN itself."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from plugrad_as_torch.own.backends.switches import set_switches, switched

__all__ = ["flags", "set_flags"]


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool | None = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> AbstractContextManager[None]:
    """A block in which the switches have these values, which change nothing in plugrad.

    >>> import plugrad.as_torch
    >>> plugrad.as_torch.install()
    >>> import torch
    >>> with torch.backends.cudnn.flags(enabled=False):
    ...     torch.backends.cudnn.enabled
    False
    >>> torch.backends.cudnn.enabled
    True
    >>> plugrad.as_torch.uninstall()
    """
    return switched("cudnn", locals())


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = "none",
    _depthwise_kernel: str | None = None,
) -> tuple[Any, ...]:
    """Set all switches that are not None; returns the previous values of all."""
    return set_switches("cudnn", {name[1:]: value for name, value in locals().items()})
