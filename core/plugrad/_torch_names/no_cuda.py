"""`plugrad.cuda` if no plugin provides it: the functions that programs call before they use a
GPU."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a GPU that can be used: no."""
    return False


def is_initialized() -> bool:
    """Whether a GPU is in use: no."""
    return False


def device_count() -> int:
    """The number of GPUs: 0."""
    return 0


def empty_cache() -> None:
    """Give unused memory of GPUs back: there is none."""


def manual_seed(seed: int) -> None:
    """Seed the generator of the current GPU: there is none."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs: there are none."""


def current_device() -> NoReturn:
    """The index of the current GPU: AssertionError, since there is none."""
    raise AssertionError("plugrad has no CUDA here: no plugin that provides it is installed")


def synchronize(device: Any = None) -> NoReturn:
    """Wait for a GPU: AssertionError, since there is none."""
    current_device()
