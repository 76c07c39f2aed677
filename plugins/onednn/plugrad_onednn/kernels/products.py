"""Products of matrices of bfloat16, which some processors have instructions for.

Sums are in float32 and rounded once, as in plugrad-cpu, which multiplies in float32.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plugrad_onednn.primitives import (
    BFLOAT16,
    BIAS,
    DST,
    SHARED,
    SRC,
    WEIGHTS,
    Plan,
    describe,
    element_strides,
    layout,
    plan_for,
    row_major,
)

Array = Any
Mask = tuple[bool, bool, bool]

# Up to this number of products, the plain kernel is as fast.
LEAST_PRODUCTS: Final = 1 << 19


def _product(a: Array, b: Array, bias: Array | None = None) -> Any:
    """`a @ b`, plus a number for each column; matrices, or as many of them on both sides."""
    if a.ndim < 2 or a.ndim != b.ndim or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return NotImplemented
    shape = (*a.shape[:-1], b.shape[-1])
    products = math.prod(shape) * a.shape[-1]
    left, right = element_strides(a), element_strides(b)
    if products < LEAST_PRODUCTS or left is None or right is None:
        return NotImplemented

    def make() -> Plan:
        layouts = {
            SRC: layout(a.shape, left, BFLOAT16),
            WEIGHTS: layout(b.shape, right, BFLOAT16),
            DST: layout(shape, row_major(shape), BFLOAT16),
        }
        added = None
        if bias is not None:
            columns = (*(1 for _ in shape[:-1]), shape[-1])
            added = layouts[BIAS] = layout(columns, row_major(columns), BFLOAT16)
        descriptor = describe("matmul", layouts[SRC], layouts[WEIGHTS], added, layouts[DST])
        return Plan(descriptor, layouts)

    key = ("matmul", a.shape, b.shape, left, right, bias is not None)
    plan = plan_for(key, make, products >= 64 * SHARED)
    if plan is None:
        return NotImplemented
    out = np.empty(shape, a.dtype)
    arrays = {SRC: a, WEIGHTS: b, DST: out}
    if bias is not None:
        arrays[BIAS] = bias
    plan.run(arrays)
    return out


def multiply(a: Array, b: Array) -> Any:
    return _product(a, b)


def multiply_by_turned(a: Array, b: Array) -> Any:
    return _product(a, b.swapaxes(-1, -2)) if b.ndim >= 2 else NotImplemented


def multiply_turned(a: Array, b: Array) -> Any:
    return _product(a.swapaxes(-1, -2), b) if a.ndim >= 2 else NotImplemented


def _columns(given: Array, like: Array, count: int) -> Array | None:
    """A number for each column, contiguous; None if it is something else."""
    if given.dtype != like.dtype or given.shape not in ((count,), (1, count)):
        return None
    found: Array = np.ascontiguousarray(given)
    return found


def addmm(c: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Any:
    if alpha != 1 or beta not in (0, 1):
        return NotImplemented
    if beta == 0:
        return _product(a, b)
    bias = _columns(c, a, b.shape[-1])
    return NotImplemented if bias is None else _product(a, b, bias)


def linear(x: Array, weight: Array, bias: Array | None) -> Any:
    if x.ndim < 2 or weight.ndim != 2:
        return NotImplemented
    if bias is not None:
        bias = _columns(bias, x, weight.shape[0])
        if bias is None:
            return NotImplemented
    out = _product(x.reshape(-1, x.shape[-1]) if x.size else x, weight.T, bias)
    return out if out is NotImplemented else out.reshape(*x.shape[:-1], weight.shape[0])


def linear_backward(x: Array, grad: Array, weight: Array, mask: Mask) -> Any:
    """The gradients of `linear` toward its input, weight and bias; None if not requested."""
    if x.ndim < 2 or weight.ndim != 2 or not x.size or not grad.size:
        return NotImplemented
    # Gradients of sums repeat one number.
    rows = np.ascontiguousarray(grad).reshape(-1, grad.shape[-1])
    flat = x.reshape(-1, x.shape[-1])
    to_input = _product(rows, weight) if mask[0] else None
    to_weight = _product(rows.T, flat) if mask[1] else None
    if to_input is NotImplemented or to_weight is NotImplemented:
        return NotImplemented
    if to_input is not None:
        to_input = to_input.reshape(x.shape)
    to_bias = rows.astype(np.float32).sum(0).astype(rows.dtype) if mask[2] else None
    return to_input, to_weight, to_bias
