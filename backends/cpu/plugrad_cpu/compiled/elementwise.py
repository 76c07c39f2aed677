"""Functions of each element that are rounded as PyTorch does: by the C library, or once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad_cpu.compiled.jit import compiled, fused

Array = np.ndarray[Any, Any]


@compiled
def exp(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.exp(x[i])


@compiled
def log(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.log(x[i])


@compiled
def log1p(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.log1p(x[i])


@compiled
def tan(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.tan(x[i])


@compiled
def stretched(x: Array, out: Array, factor: Any, summand: Any) -> None:
    """x * factor + summand; all of one dtype."""
    for i in range(x.size):
        out[i] = fused(x[i], factor, summand)
