"""softmax and log_softmax along a dimension, and their gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad_onednn.primitives import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    FORWARD,
    INFERENCE,
    SHARED,
    SRC,
    Plan,
    describe,
    layout,
    plan_for,
    row_major,
)

Array = Any

ACCURATE: Final = 0x30000
LOG: Final = 0x30001


def _loses_nan(a: Array) -> bool:
    """Whether rows have an inf or a nan, which oneDNN turns into zeros. -inf is harmless."""
    flat = a.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat.dot(flat)):  # a fast check by BLAS, which usually suffices
            return False
        return not flat.max() < np.inf


def _forward(a: Array, dim: int, function: int) -> Any:
    if not a.ndim or not a.size or _loses_nan(a):
        return NotImplemented
    axis = dim % a.ndim

    def make() -> Plan:
        rows = layout(a.shape, row_major(a.shape))
        descriptor = describe("softmax_forward", INFERENCE, function, rows, rows, axis)
        return Plan(descriptor, {SRC: rows, DST: rows})

    plan = plan_for(("softmax", a.shape, axis, function), make, a.size >= SHARED)
    if plan is None:
        return NotImplemented
    out = np.empty(a.shape, a.dtype)
    plan.run({SRC: a, DST: out})
    return out


def _backward(grad: Array, out: Array, dim: int, function: int) -> Any:
    if not out.ndim or not out.size or grad.shape != out.shape or grad.dtype != out.dtype:
        return NotImplemented
    axis = dim % out.ndim

    def make() -> Plan:
        rows = layout(out.shape, row_major(out.shape))
        hint = describe("softmax_forward", FORWARD, function, rows, rows, axis)
        descriptor = describe("softmax_backward", function, rows, rows, rows, axis, hint)
        return Plan(descriptor, {DST: rows, DIFF_DST: rows, DIFF_SRC: rows})

    plan = plan_for(("softmax_backward", out.shape, axis, function), make, out.size >= SHARED)
    if plan is None:
        return NotImplemented
    found = np.empty(out.shape, out.dtype)
    plan.run({DST: out, DIFF_DST: grad, DIFF_SRC: found})
    return found


def softmax(a: Array, dim: int, half_to_float: bool) -> Any:
    return _forward(a, dim, ACCURATE)


def log_softmax(a: Array, dim: int, half_to_float: bool) -> Any:
    return _forward(a, dim, LOG)


def softmax_backward(grad: Array, out: Array, dim: int, dtype: Any) -> Any:
    return _backward(grad, out, dim, ACCURATE) if dtype == out.dtype else NotImplemented


def log_softmax_backward(grad: Array, out: Array, dim: int, dtype: Any) -> Any:
    return _backward(grad, out, dim, LOG) if dtype == out.dtype else NotImplemented
