"""Operators that take lists of arrays: functions of each array, steps of optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plugrad_cpu.kernels.lists import functions, optimizers

KERNELS: Final[dict[str, Callable[..., Any]]] = {**functions.KERNELS, **optimizers.KERNELS}
