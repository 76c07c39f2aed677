"""Activation functions and their gradients, on contiguous arrays of one size.

exp is left out because oneDNN turns nan into inf, and tanh because NumPy is faster.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_onednn.primitives import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    INFERENCE,
    SHARED,
    SRC,
    Plan,
    describe,
    layout,
    plan_for,
)

Array = Any
Kernel = Callable[..., Any]

# oneDNN's numbers.
LOGISTIC: Final = 0x29
GELU_TANH: Final = 0x2B
SWISH: Final = 0x2C
GELU_ERF: Final = 0x31
# The functions that compute gelu, by `approximate`.
_GELU: Final = {"none": GELU_ERF, "tanh": GELU_TANH}


def _forward_descriptor(size: int, function: int, alpha: float) -> Any:
    flat = layout((size,), (1,))
    numbers = (ctypes.c_float(alpha), ctypes.c_float(0.0))
    return describe("eltwise_forward", INFERENCE, function, flat, flat, *numbers)


def apply(a: Array, function: int, alpha: float = 0.0) -> Any:
    """A function of each element."""
    size = a.size

    def make() -> Plan:
        flat = layout((size,), (1,))
        return Plan(_forward_descriptor(size, function, alpha), {SRC: flat, DST: flat})

    plan = plan_for(("apply", size, function, alpha), make, size >= SHARED)
    if plan is None:
        return NotImplemented
    out = np.empty(a.shape, a.dtype)
    plan.run({SRC: a, DST: out})
    return out


def differentiate(grad: Array, a: Array, function: int, alpha: float = 0.0) -> Any:
    """The gradient's product with the function's derivative."""
    if grad.shape != a.shape or grad.dtype != a.dtype:
        return NotImplemented
    size = a.size

    def make() -> Plan:
        flat = layout((size,), (1,))
        numbers = (ctypes.c_float(alpha), ctypes.c_float(0.0))
        hint = describe("eltwise_forward", 64, function, flat, flat, *numbers)
        descriptor = describe("eltwise_backward", function, flat, flat, flat, *numbers, hint)
        return Plan(descriptor, {SRC: flat, DIFF_DST: flat, DIFF_SRC: flat})

    plan = plan_for(("differentiate", size, function, alpha), make, size >= SHARED)
    if plan is None:
        return NotImplemented
    out = np.empty(a.shape, a.dtype)
    plan.run({SRC: a, DIFF_DST: grad, DIFF_SRC: out})
    return out


def gelu(a: Array, approximate: str) -> Any:
    if approximate not in _GELU:
        return NotImplemented
    out = apply(a, _GELU[approximate])
    if out is NotImplemented:
        return out
    # oneDNN's gelu by the error function gives nan for inf.
    if approximate == "none" and has_nan(out):
        out[a == np.inf] = np.inf
    return out


def has_nan(a: Array) -> bool:
    """Whether a contiguous array has a nan: then its dot product with itself is nan, and BLAS is
    fast."""
    flat = a.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(flat.dot(flat)))


def gelu_backward(grad: Array, a: Array, approximate: str) -> Any:
    return differentiate(grad, a, _GELU[approximate]) if approximate in _GELU else NotImplemented


def sigmoid(a: Array) -> Any:
    return apply(a, LOGISTIC)


def silu(a: Array) -> Any:
    return apply(a, SWISH, 1.0)


def silu_backward(grad: Array, a: Array) -> Any:
    return differentiate(grad, a, SWISH, 1.0)
