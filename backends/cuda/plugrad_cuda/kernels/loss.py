"""Kernels of loss functions and their gradients: the elements and their sum in one launch.

The negative log likelihood here serves dtypes for which there is no CUDA source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad.plugins.kernel_errors import NO_PROBABILITIES, NO_TARGETS, no_class
from plugrad_cuda.kernels.family import INT64, Family, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace


def _square_error(xp: Any, a: Array, b: Array) -> Any:
    return xp.square(a - b)


def _square_error_gradient(xp: Any, grad: Array, a: Array, b: Array, factor: float) -> Any:
    return (a - b) * (grad * factor)


def _cross_entropy(xp: Any, x: Array, target: Array, weight: Array | None) -> Any:
    certain = (target - 1) * xp.maximum(xp.log1p(-x), -100.0)
    losses = certain - target * xp.maximum(xp.log(x), -100.0)
    return losses if weight is None else losses * weight


def _cross_entropy_gradient(
    xp: Any, grad: Array, x: Array, target: Array, weight: Array | None, count: float
) -> Any:
    slope = (x - target) / xp.maximum((1 - x) * x, 1e-12)
    return (slope if weight is None else slope * weight) * (grad / count)


def _cross_entropy_of_logits(
    xp: Any, x: Array, target: Array, weight: Array | None, pos_weight: Array | None
) -> Any:
    """(1 - t) * x + p * (max(-x, 0) + log1p(exp(-|x|))), with p = 1 + (pos_weight - 1) * t."""
    softplus = xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(-x, 0.0)
    if pos_weight is not None:
        softplus = softplus * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * x + softplus
    return losses if weight is None else losses * weight


def _outside_unit(xp: Any, x: Array) -> Any:
    return (x < 0) | (x > 1) | xp.isnan(x)


def _share(xp: Any, known: Array, grad: Array, weight: Array | None, total: Array | None) -> Any:
    share = -grad if weight is None else -grad * weight
    return xp.where(known, share if total is None else share / total, 0.0)


class Loss(Family):
    """Fused losses; `reduction` is "none", "mean" or "sum"."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.square_error = self.fused(_square_error)
        self.square_error_sum = self.summed(_square_error)
        self.square_error_gradient = self.fused(_square_error_gradient)
        self.cross_entropy = self.fused(_cross_entropy)
        self.cross_entropy_sum = self.summed(_cross_entropy)
        self.cross_entropy_gradient = self.fused(_cross_entropy_gradient)
        self.logits = self.fused(_cross_entropy_of_logits)
        self.logits_sum = self.summed(_cross_entropy_of_logits)
        self.outside_unit = self.fused(_outside_unit)
        self.share = self.fused(_share)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "nll_loss_forward": self.nll_loss_forward,
            "nll_loss_backward": self.nll_loss_backward,
            "mse_loss": self.mse_loss,
            "mse_loss_backward": self.mse_loss_backward,
            "binary_cross_entropy": self.binary_cross_entropy,
            "binary_cross_entropy_backward": self.binary_cross_entropy_backward,
            "binary_cross_entropy_with_logits": self.bce_with_logits,
        }

    def summed(self, losses: Kernel) -> Kernel:
        """The sum of losses times `share`, as one kernel: a map and a reduction. CuPy fuses
        nothing with an argument after a reduction."""

        def summed(xp: Any, share: float, *args: Any) -> Any:
            return xp.sum(losses(xp, *args) * share)

        summed.__name__ = f"{losses.__name__}_sum"
        return self.fused(summed)

    def reduced(self, each: Kernel, summed: Kernel, reduction: str, *args: Any) -> Any:
        """Losses as they are, or their sum or mean."""
        if reduction == "none":
            return each(*args)
        if reduction == "sum":
            return summed(1.0, *args)
        shapes = [arg.shape for arg in args if arg is not None]
        count = math.prod(np.broadcast_shapes(*shapes))
        if count == 0:
            return self.xp.full((), math.nan, args[0].dtype)
        return summed(1.0 / count, *args)

    def mse_loss(self, a: Array, b: Array, reduction: str) -> Any:
        return self.reduced(self.square_error, self.square_error_sum, reduction, a, b)

    def mse_loss_backward(self, grad: Array, a: Array, b: Array, reduction: str) -> Any:
        count = math.prod(np.broadcast_shapes(a.shape, b.shape))
        factor = 2.0 / max(count, 1) if reduction == "mean" else 2.0
        return self.square_error_gradient(grad, a, b, factor)

    def binary_cross_entropy(
        self, x: Array, target: Array, weight: Array | None, reduction: str
    ) -> Any:
        if x.size and self.ns.may_wait():
            for checked, words in ((x, NO_PROBABILITIES), (target, NO_TARGETS)):
                if bool(self.xp.any(self.outside_unit(checked))):
                    raise RuntimeError(words)
        return self.reduced(
            self.cross_entropy, self.cross_entropy_sum, reduction, x, target, weight
        )

    def binary_cross_entropy_backward(
        self, grad: Array, x: Array, target: Array, weight: Array | None, reduction: str
    ) -> Any:
        count = float(x.size) if reduction == "mean" else 1.0
        return self.cross_entropy_gradient(grad, x, target, weight, count)

    def bce_with_logits(
        self,
        x: Array,
        target: Array,
        weight: Array | None,
        pos_weight: Array | None,
        reduction: str,
    ) -> Any:
        return self.reduced(self.logits, self.logits_sum, reduction, x, target, weight, pos_weight)

    def classes(self, target: Array, classes: int, ignore_index: int) -> tuple[Array, Array]:
        """Targets with the ignored ones made class 0, and the mask of the others."""
        known = target != ignore_index
        safe = self.xp.where(known, target, 0)
        if safe.size and self.ns.may_wait():
            bad = (safe < 0) | (safe >= classes)
            if bool(self.xp.any(bad)):
                raise no_class(int(safe.reshape(-1)[self.xp.argmax(bad)]))
        return safe, known

    def at(self, shape: tuple[int, ...], target: Array) -> tuple[Any, ...]:
        """The index of each target's class: shape (C), (N, C) or (N, C, d1, ...)."""
        if len(shape) == 1:
            return (target,)
        others = (shape[0], *shape[2:])
        grid = [
            self.xp.arange(size).reshape((size,) + (1,) * (len(others) - place - 1))
            for place, size in enumerate(others)
        ]
        return (grid[0], target, *grid[1:])

    def nll_loss_forward(
        self, x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
    ) -> tuple[Any, Any]:
        """The loss, and the sum of the weights of the targets that count."""
        wide = widen(x)
        if x.ndim == 1 and reduction != "none":
            target = target.reshape(())
        safe, known = self.classes(target, x.shape[1 if x.ndim > 1 else 0], ignore_index)
        if weight is None:
            factors = known.astype(wide.dtype)
        else:
            factors = self.xp.where(known, widen(weight)[safe], wide.dtype.type(0))
        picked = wide[self.at(x.shape, safe)]
        losses = self.xp.where(known, -picked * factors, wide.dtype.type(0))
        total = self.xp.sum(factors)
        if reduction != "none":
            losses = self.xp.sum(losses)
            if reduction == "mean":
                losses = losses / total
        return losses.astype(x.dtype, copy=False), total.astype(x.dtype, copy=False)

    def nll_loss_backward(
        self,
        grad: Array,
        x: Array,
        target: Array,
        weight: Array | None,
        reduction: str,
        ignore_index: int,
        total_weight: Array,
    ) -> Any:
        target = target.astype(INT64, copy=False)
        if x.ndim == 1 and target.ndim == 1 and reduction != "none":
            target = target.reshape(())
        safe, known = self.classes(target, x.shape[1 if x.ndim > 1 else 0], ignore_index)
        factors = None if weight is None else widen(weight)[safe]
        total = widen(total_weight) if reduction == "mean" else None
        share = self.share(known, widen(grad), factors, total)
        out = self.xp.zeros(x.shape, x.dtype)
        out[self.at(x.shape, safe)] = share.astype(x.dtype, copy=False)
        return out
