"""`torch.backends.mkldnn`: its switches for a block. plugrad's kernels do not call oneDNN."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final, Self

from plugrad_as_torch.own.backends.switches import set_switches, switched

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "flags", "set_flags", "verbose"]

VERBOSE_OFF: Final = 0
VERBOSE_ON: Final = 1
VERBOSE_ON_CREATION: Final = 2


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool | None = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """A block in which the switches have these values, which change nothing in plugrad."""
    return switched("mkldnn", locals())


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = "none",
) -> tuple[Any, ...]:
    """Set all switches that are not None; returns the previous values of all."""
    return set_switches("mkldnn", {name[1:]: value for name, value in locals().items()})


class verbose:
    """A block in which oneDNN would print its calls; there is none."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None
