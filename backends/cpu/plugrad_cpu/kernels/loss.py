"""Kernels of loss functions and their gradients, with few passes over the arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import NO_PROBABILITIES, NO_TARGETS, no_class
from plugrad_cpu.kernels.linalg import is_narrow, widen
from plugrad_cpu.numerics.adapters import as_operand

Array = Any
Kernel = Callable[..., Any]

_rows: Final[dict[int, Array]] = {}


def row_numbers(count: int) -> Array:
    """0, 1, ... count - 1, kept for batches of the sizes that recur in training."""
    found = _rows.get(count)
    if found is None:
        if len(_rows) > 64:
            _rows.clear()
        found = _rows[count] = np.arange(count)
    return found


def _all_in_range(target: Array, classes: int) -> bool:
    """Whether every target is a class: negative numbers are large ones when taken as unsigned."""
    return bool(np.maximum.reduce(target.view(np.uint64), None) < classes)


def _positions(target: Array, classes: int, ignore_index: int) -> tuple[Array, Array]:
    """Targets with the ignored ones made class 0, and the mask of the others."""
    known = target != ignore_index
    safe = np.where(known, target, 0)
    bad = known & ((safe < 0) | (safe >= classes))
    if bad.any():
        raise no_class(safe[bad].flat[0])
    return safe, known


def _at(shape: tuple[int, ...], target: Array) -> tuple[Any, ...]:
    """The index of each target's class: shape (C), (N, C) or (N, C, d1, ...)."""
    if len(shape) == 1:
        return (target,)
    if len(shape) == 2:
        return (row_numbers(shape[0]), target)
    grid = np.ogrid[tuple(slice(size) for size in (shape[0], *shape[2:]))]
    return (grid[0], target, *grid[1:])


def _reduced(losses: Array, divisor: Any, reduction: str) -> tuple[Any, Any]:
    if reduction == "none":
        return losses, divisor
    total = np.add.reduce(losses, None)
    return (total / divisor if reduction == "mean" else total), divisor


def nll_loss_forward(
    x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
) -> tuple[Any, Any]:
    """The loss, and the sum of the weights of the targets that count."""
    if x.itemsize == 2 and is_narrow(x):
        loss, total = nll_loss_forward(
            widen(x), target, None if weight is None else widen(weight), reduction, ignore_index
        )
        return np.asarray(loss).astype(x.dtype), np.asarray(total).astype(x.dtype)
    if x.ndim == 1:
        target = target.reshape(()) if reduction != "none" else target
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    dtype = x.dtype
    if (
        weight is None
        and target.size
        and not 0 <= ignore_index < classes
        and _all_in_range(target, classes)
    ):
        picked = x[_at(x.shape, target)]
        losses = np.negative(picked)
        return _reduced(losses, dtype.type(target.size), reduction)
    safe, known = _positions(target, classes, ignore_index)
    if not classes:  # There is nothing to pick; every target is the ignored one.
        return _reduced(np.zeros(target.shape, dtype), dtype.type(0), reduction)
    factors = (
        known.astype(dtype) if weight is None else np.where(known, weight[safe], dtype.type(0))
    )
    losses = np.where(known, -x[_at(x.shape, safe)] * factors, dtype.type(0))
    return _reduced(losses, np.add.reduce(factors, None), reduction)


def nll_loss_backward(
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
    total_weight: Array,
) -> Any:
    if x.itemsize == 2 and is_narrow(x):
        wide = [None if a is None else widen(a) for a in (grad, x, weight, total_weight)]
        out = nll_loss_backward(wide[0], wide[1], target, wide[2], reduction, ignore_index, wide[3])
        return out.astype(x.dtype)
    if target.dtype is not _INT64:
        if target.dtype.kind not in "iu":
            raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype}")
        target = target.astype(_INT64)
    if x.ndim == 1 and target.ndim == 1 and reduction != "none":
        target = target.reshape(())
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    out = np.zeros(x.shape, x.dtype)
    share = np.negative(grad)
    if reduction == "mean":
        share = share / total_weight
    simple = weight is None and not 0 <= ignore_index < classes and target.size
    if simple and _all_in_range(target, classes):
        out[_at(x.shape, target)] = share
        return out
    if not classes:
        return out
    safe, known = _positions(target, classes, ignore_index)
    if weight is not None:
        share = share * weight[safe]
    out[_at(x.shape, safe)] = np.where(known, share, x.dtype.type(0))
    return out


_INT64: Final = np.dtype(np.int64)


def mse_loss(a: Array, b: Array, reduction: str) -> Any:
    if a.itemsize == 2:
        return np.asarray(mse_loss(widen(a), widen(b), reduction)).astype(a.dtype)
    difference = np.subtract(a, b)
    if reduction == "none":
        return np.square(difference)
    if not isinstance(difference, np.ndarray):
        return difference * difference
    flat = difference.reshape(-1)
    total = flat.dot(flat)
    return total / a.dtype.type(flat.size) if reduction == "mean" else total


def mse_loss_backward(grad: Array, a: Array, b: Array, reduction: str) -> Any:
    if a.itemsize == 2:
        return np.asarray(mse_loss_backward(widen(grad), widen(a), widen(b), reduction)).astype(
            a.dtype
        )
    out = np.asarray(np.subtract(a, b))
    factor = grad * as_operand(2.0 / max(out.size, 1) if reduction == "mean" else 2.0, a.dtype)
    return np.multiply(out, factor, out)


def _mean_or_sum(losses: Array, reduction: str) -> Any:
    if reduction == "none":
        return losses
    total = np.add.reduce(losses, None)
    return total / losses.dtype.type(losses.size) if reduction == "mean" else total


def binary_cross_entropy(x: Array, target: Array, weight: Array | None, reduction: str) -> Any:
    if x.itemsize == 2:
        wide = None if weight is None else widen(weight)
        loss = binary_cross_entropy(widen(x), widen(target), wide, reduction)
        return np.asarray(loss).astype(x.dtype)
    if x.size:
        if not (x.min() >= 0 and x.max() <= 1):
            raise RuntimeError(NO_PROBABILITIES)
        if not (target.min() >= 0 and target.max() <= 1):
            raise RuntimeError(NO_TARGETS)
    least = as_operand(-100, x.dtype)
    one = as_operand(1, x.dtype)
    losses = (target - one) * np.maximum(np.log1p(-x), least)
    losses = np.asarray(losses - target * np.maximum(np.log(x), least))
    if weight is not None:
        losses = losses * weight
    return _mean_or_sum(losses, reduction)


def binary_cross_entropy_backward(
    grad: Array, x: Array, target: Array, weight: Array | None, reduction: str
) -> Any:
    if x.itemsize == 2:
        wide = None if weight is None else widen(weight)
        found = binary_cross_entropy_backward(widen(grad), widen(x), widen(target), wide, reduction)
        return found.astype(x.dtype)
    spread = np.maximum((as_operand(1, x.dtype) - x) * x, as_operand(1e-12, x.dtype))
    out = np.asarray((x - target) / spread)
    if weight is not None:
        out = np.asarray(out * weight)
    if reduction == "mean":
        grad = grad / x.dtype.type(x.size)
    return np.multiply(out, grad)


def bce_with_logits(
    x: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Any:
    """(1 - t) * x + p * (max(-x, 0) + log1p(exp(-|x|))), with p = 1 + (pos_weight - 1) * t."""
    if x.itemsize == 2:
        factors = [None if a is None else widen(a) for a in (weight, pos_weight)]
        loss = bce_with_logits(widen(x), widen(target), factors[0], factors[1], reduction)
        return np.asarray(loss).astype(x.dtype)
    one = as_operand(1, x.dtype)
    softplus = np.asarray(np.log1p(np.exp(-np.abs(x))))
    softplus += np.maximum(-x, as_operand(0, x.dtype))
    if pos_weight is not None:
        softplus = softplus * (one + (pos_weight - one) * target)
    losses = np.asarray((one - target) * x + softplus)
    if weight is not None:
        losses = np.asarray(losses * weight)
    return _mean_or_sum(losses, reduction)


KERNELS: Final[dict[str, Kernel]] = {
    "nll_loss_forward": nll_loss_forward,
    "nll_loss_backward": nll_loss_backward,
    "mse_loss": mse_loss,
    "mse_loss_backward": mse_loss_backward,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_backward": binary_cross_entropy_backward,
    "binary_cross_entropy_with_logits": bce_with_logits,
}
