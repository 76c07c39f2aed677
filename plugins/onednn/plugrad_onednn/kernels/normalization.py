"""Layer normalisation and its gradients."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Final

import numpy as np

from plugrad_onednn.primitives import (
    BACKWARD,
    DIFF_DST,
    DIFF_SCALE,
    DIFF_SHIFT,
    DIFF_SRC,
    DST,
    FORWARD,
    MEAN,
    SCALE,
    SHARED,
    SHIFT,
    SRC,
    VARIANCE,
    Plan,
    describe,
    layout,
    plan_for,
)

Array = Any
Mask = tuple[bool, bool, bool]

_USE_SCALE: Final = 2
_USE_SHIFT: Final = 4


def _descriptor(count: int, size: int, eps: float, flags: int) -> Any:
    rows, stats = layout((count, size), (size, 1)), layout((count,), (1,))
    numbers = (ctypes.c_float(eps), flags)
    return describe("layer_normalization_forward", FORWARD, rows, rows, stats, *numbers)


def _fits(x: Array, *others: Array | None) -> bool:
    return all(other is None or other.dtype == x.dtype for other in others)


def layer_norm(
    x: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> Any:
    """The normalised input, its mean, and 1 / deviation; the latter two keep the normalised
    dimensions as 1."""
    size = math.prod(shape)
    if not x.size or not _fits(x, weight, bias):
        return NotImplemented
    count = x.size // size
    flags = _USE_SCALE * (weight is not None) + _USE_SHIFT * (bias is not None)

    def make() -> Plan:
        rows, stats = layout((count, size), (size, 1)), layout((count,), (1,))
        given = {SRC: rows, DST: rows, MEAN: stats, VARIANCE: stats}
        flat = layout((size,), (1,))
        given |= {SCALE: flat} if weight is not None else {}
        given |= {SHIFT: flat} if bias is not None else {}
        return Plan(_descriptor(count, size, eps, flags), given)

    plan = plan_for(("layer_norm", count, size, eps, flags), make, x.size >= SHARED)
    if plan is None:
        return NotImplemented
    out = np.empty(x.shape, x.dtype)
    mean, variance = np.empty(count, x.dtype), np.empty(count, x.dtype)
    arrays = {SRC: x, DST: out, MEAN: mean, VARIANCE: variance}
    arrays |= {SCALE: weight} if weight is not None else {}
    arrays |= {SHIFT: bias} if bias is not None else {}
    plan.run(arrays)
    variance += x.dtype.type(eps)
    np.sqrt(variance, variance)
    with np.errstate(divide="ignore"):
        np.reciprocal(variance, variance)
    kept = x.shape[: x.ndim - len(shape)] + (1,) * len(shape)
    return out, mean.reshape(kept), variance.reshape(kept)


def layer_norm_backward(
    grad: Array,
    x: Array,
    shape: tuple[int, ...],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    mask: Mask,
) -> Any:
    """The gradients of input, weight and bias; those that `mask` leaves out are None."""
    size = math.prod(shape)
    if not x.size or grad.shape != x.shape or not _fits(x, grad, mean, rstd, weight, bias):
        return NotImplemented
    count = x.size // size
    flags = _USE_SCALE * (weight is not None) + _USE_SHIFT * (bias is not None)
    # oneDNN expects a variance; the given deviation already includes eps.
    eps = 0.0

    def make() -> Plan:
        rows, stats = layout((count, size), (size, 1)), layout((count,), (1,))
        flat = layout((size,), (1,))
        hint = _descriptor(count, size, eps, flags)
        descriptor = describe(
            "layer_normalization_backward",
            BACKWARD,
            rows,
            rows,
            rows,
            stats,
            ctypes.c_float(eps),
            flags,
            hint,
        )
        given = {SRC: rows, DIFF_DST: rows, DIFF_SRC: rows, MEAN: stats, VARIANCE: stats}
        given |= {SCALE: flat, DIFF_SCALE: flat} if weight is not None else {}
        given |= {SHIFT: flat, DIFF_SHIFT: flat} if bias is not None else {}
        return Plan(descriptor, given)

    plan = plan_for(("layer_norm_backward", count, size, flags), make, x.size >= SHARED)
    if plan is None:
        return NotImplemented
    with np.errstate(all="ignore"):
        variance = 1 / (rstd * rstd)
    to_input = np.empty(x.shape, x.dtype)
    arrays = {SRC: x, DIFF_DST: grad, DIFF_SRC: to_input, MEAN: mean, VARIANCE: variance}
    to_weight = to_bias = None
    if weight is not None:
        to_weight = np.empty(shape, x.dtype)
        arrays |= {SCALE: weight, DIFF_SCALE: to_weight}
    if bias is not None:
        to_bias = np.empty(shape, x.dtype)
        arrays |= {SHIFT: bias, DIFF_SHIFT: to_bias}
    plan.run(arrays)
    return (
        to_input if mask[0] else None,
        to_weight if mask[1] else None,
        to_bias if mask[2] else None,
    )
