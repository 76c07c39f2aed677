"""Kernels of normalisation, embedding, dropout and one-hot vectors.

Layer norm and embedding here serve dtypes for which there is no CUDA source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad.plugins.kernel_errors import OUTSIDE_TABLE, one_hot_classes
from plugrad_cuda.kernels.family import INT64, Family, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace
from plugrad_cuda.kernels.scattering import add_at

Mask = tuple[bool, bool, bool]


def _square_deviation(xp: Any, x: Array, mean: Array) -> Any:
    return xp.square(x - mean)


def _reciprocal_deviation(xp: Any, variance: Array, eps: float) -> Any:
    return xp.reciprocal(xp.sqrt(variance + eps))


def _normalized(
    xp: Any, x: Array, mean: Array, rstd: Array, weight: Array | None, bias: Array | None
) -> Any:
    out = (x - mean) * rstd
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


def _times_normalized(xp: Any, grad: Array, x: Array, mean: Array, rstd: Array) -> Any:
    return grad * (x - mean) * rstd


def _normalized_gradient(
    xp: Any,
    grad: Array,
    weight: Array | None,
    x: Array,
    mean: Array,
    rstd: Array,
    along: Array,
    shift: Array,
) -> Any:
    """What is left of a gradient without its parts along the input and along the mean."""
    weighted = grad if weight is None else grad * weight
    return (weighted - (x - mean) * rstd * along - shift) * rstd


def _moved(xp: Any, running: Array, value: Array, momentum: float, factor: float) -> Any:
    return running + (value * factor - running) * momentum


def _scaled_gradient(xp: Any, grad: Array, rstd: Array, weight: Array | None) -> Any:
    return grad * rstd if weight is None else grad * rstd * weight


def _dropped(xp: Any, x: Array, drawn: Array, p: float, scale: float) -> Any:
    kept = drawn >= p
    return xp.where(kept, x * scale, 0.0), kept


def _kept(xp: Any, grad: Array, kept: Array, scale: float) -> Any:
    return grad * kept * scale


class Norm(Family):
    """Layer norm and batch norm: statistics by reductions, the rest fused."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.square_deviation = self.fused(_square_deviation)
        self.reciprocal_deviation = self.fused(_reciprocal_deviation)
        self.normalized = self.fused(_normalized)
        self.times_normalized = self.fused(_times_normalized)
        self.normalized_gradient = self.fused(_normalized_gradient)
        self.scaled_gradient = self.fused(_scaled_gradient)
        self.moved = self.fused(_moved)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "native_layer_norm": self.layer_norm,
            "native_layer_norm_backward": self.layer_norm_backward,
            "native_batch_norm": self.batch_norm,
            "native_batch_norm_backward": self.batch_norm_backward,
        }

    def mean(self, x: Array, axis: Any) -> Array:
        """The mean with its dimensions kept; nan of nothing."""
        count = math.prod(x.shape[dim] for dim in axis)
        total = self.xp.sum(x, axis=axis, keepdims=True)
        return self.xp.true_divide(total, x.dtype.type(count))

    def layer_norm(
        self,
        x: Array,
        shape: tuple[int, ...],
        weight: Array | None,
        bias: Array | None,
        eps: float,
    ) -> tuple[Any, Any, Any]:
        """The normalised input, and mean and 1 / deviation with the normalised dimensions kept
        as 1. Those stay in float32 for 16-bit inputs."""
        wide = widen(x)
        axis = tuple(range(x.ndim - len(shape), x.ndim))
        mean = self.mean(wide, axis)
        variance = self.mean(self.square_deviation(wide, mean), axis)
        rstd = self.reciprocal_deviation(variance, eps)
        out = self.normalized(wide, mean, rstd, _wide(weight), _wide(bias))
        return out.astype(x.dtype, copy=False), mean, rstd

    def layer_norm_backward(
        self,
        grad: Array,
        x: Array,
        shape: tuple[int, ...],
        mean: Array,
        rstd: Array,
        weight: Array | None,
        bias: Array | None,
        mask: Mask,
    ) -> tuple[Any, Any, Any]:
        split = x.ndim - len(shape)
        leading, axis = tuple(range(split)), tuple(range(split, x.ndim))
        grads, inputs, factor = widen(grad), widen(x), _wide(weight)
        mean, rstd = widen(mean), widen(rstd)
        to_input = to_weight = to_bias = None
        if mask[0]:
            weighted = grads if factor is None else grads * factor
            along = self.mean(self.times_normalized(weighted, inputs, mean, rstd), axis)
            shift = self.mean(weighted, axis)
            to_input = self.normalized_gradient(
                grads, factor, inputs, mean, rstd, along, shift
            ).astype(x.dtype, copy=False)
        if mask[1] and weight is not None:
            product = self.times_normalized(grads, inputs, mean, rstd)
            to_weight = _over(self.xp, product, leading).astype(weight.dtype, copy=False)
        if mask[2] and bias is not None:
            to_bias = _over(self.xp, grads, leading).astype(bias.dtype, copy=False)
        return to_input, to_weight, to_bias

    def batch_norm(
        self,
        x: Array,
        weight: Array | None,
        bias: Array | None,
        running_mean: Array,
        running_var: Array,
        training: bool,
        momentum: float,
        eps: float,
    ) -> tuple[Any, Any, Any]:
        """The normalised input and, when training, mean and 1 / deviation of each channel.

        The running statistics are updated in place; when training they may be None.
        """
        wide = widen(x)
        beside = (-1, *(1,) * (x.ndim - 2))
        scale, shift = _beside(_wide(weight), beside), _beside(_wide(bias), beside)
        if training:
            axis = (0, *range(2, x.ndim))
            count = x.size // max(x.shape[1], 1)
            center = self.mean(wide, axis)
            variance = self.mean(self.square_deviation(wide, center), axis)
            rstd = self.reciprocal_deviation(variance, eps)
            mean, invstd = center.reshape(-1), rstd.reshape(-1)
            self.update(running_mean, mean, momentum, 1.0)
            # PyTorch keeps the unbiased variance; of a single value that is nan.
            unbiased = count / (count - 1) if count > 1 else math.nan
            self.update(running_var, variance.reshape(-1), momentum, unbiased)
        else:
            center = _beside(running_mean.astype(wide.dtype, copy=False), beside)
            variance = _beside(running_var.astype(wide.dtype, copy=False), beside)
            rstd = self.reciprocal_deviation(variance, eps)
            mean, invstd = self.xp.empty(0, wide.dtype), self.xp.empty(0, wide.dtype)
        out = self.normalized(wide, center, rstd, scale, shift)
        return out.astype(x.dtype, copy=False), mean, invstd

    def update(self, running: Array | None, value: Array, momentum: float, factor: float) -> None:
        if running is not None:
            moved = self.moved(running, value, momentum, factor)
            self.xp.copyto(running, moved, casting="unsafe")

    def batch_norm_backward(
        self,
        grad: Array,
        x: Array,
        weight: Array | None,
        running_mean: Array,
        running_var: Array,
        mean: Array,
        invstd: Array,
        training: bool,
        eps: float,
        mask: Mask,
    ) -> tuple[Any, Any, Any]:
        grads, inputs = widen(grad), widen(x)
        beside = (-1, *(1,) * (x.ndim - 2))
        others = (0, *range(2, x.ndim))
        scale = _beside(_wide(weight), beside)
        dtype = inputs.dtype
        if training:
            center, rstd = _beside(widen(mean), beside), _beside(widen(invstd), beside)
        else:
            center = _beside(running_mean.astype(dtype, copy=False), beside)
            variance = _beside(running_var.astype(dtype, copy=False), beside)
            rstd = self.reciprocal_deviation(variance, eps)
        to_input = to_weight = to_bias = None
        if training or mask[2]:
            to_bias = self.xp.sum(grads, axis=others)
        if training or mask[1]:
            product = self.times_normalized(grads, inputs, center, rstd)
            to_weight = self.xp.sum(product, axis=others)
        if mask[0] and training:
            count = dtype.type(x.size // max(x.shape[1], 1))
            along = _beside(to_weight / count, beside)
            shift = _beside(to_bias / count, beside)
            to_input = self.normalized_gradient(grads, None, inputs, center, rstd, along, shift)
            if scale is not None:
                to_input = self.xp.multiply(to_input, scale, out=to_input)
        elif mask[0]:
            to_input = self.scaled_gradient(grads, rstd, scale)
        kind = x.dtype if weight is None else weight.dtype
        return (
            None if to_input is None else to_input.astype(x.dtype, copy=False),
            None if to_weight is None or not mask[1] else to_weight.astype(kind, copy=False),
            None if to_bias is None or not mask[2] else to_bias.astype(kind, copy=False),
        )


class Tokens(Family):
    """Embedding, one-hot vectors, dropout."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.dropped = self.fused(_dropped)
        self.kept = self.fused(_kept)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "embedding": self.embedding,
            "embedding_dense_backward": self.embedding_backward,
            "native_dropout": self.dropout,
            "native_dropout_backward": self.dropout_backward,
            "one_hot": self.one_hot,
        }

    def embedding(self, weight: Array, indices: Array) -> Any:
        if indices.size and self.ns.may_wait():
            bad = (indices < 0) | (indices >= weight.shape[0])
            if bool(self.xp.any(bad)):
                raise IndexError(OUTSIDE_TABLE)
        return self.xp.take(weight, indices, axis=0)

    def embedding_backward(
        self, grad: Array, indices: Array, rows: int, padding_idx: int, scale_grad_by_freq: bool
    ) -> Any:
        width = grad.shape[-1]
        flat = indices.reshape(-1)
        wide = widen(grad)
        out = self.xp.zeros((rows, width), wide.dtype)
        if flat.size:
            values = wide.reshape(flat.size, width)
            if scale_grad_by_freq:
                counts = self.xp.bincount(flat, minlength=rows)
                values = values / counts[flat][:, None].astype(wide.dtype)
            add_at(self.ns, out, (flat,), values)
            if padding_idx >= 0:
                out[padding_idx] = 0
        return out.astype(grad.dtype, copy=False)

    def dropout(self, x: Array, p: float, training: bool, generator: Any) -> tuple[Any, Any]:
        """The input with elements dropped and the others scaled, and the mask of those kept."""
        if not training:
            return x.copy(), self.xp.ones(x.shape, np.bool_)
        drawn = self.xp.asarray(generator.rng.random(x.shape, dtype=np.float32))
        out, kept = self.dropped(x, drawn, p, 0.0 if p == 1 else 1 / (1 - p))
        return out.astype(x.dtype, copy=False), kept

    def dropout_backward(self, grad: Array, kept: Array, scale: float) -> Any:
        return self.kept(grad, kept, scale)

    def one_hot(self, indices: Array, classes: int) -> Any:
        if indices.size and (classes == -1 or self.ns.may_wait()):
            least, largest = int(self.xp.amin(indices)), int(self.xp.amax(indices))
            classes = one_hot_classes(least, largest, classes)
        ids = self.xp.arange(classes)
        return self.xp.equal(indices[..., None], ids).astype(INT64)


def _wide(a: Array | None) -> Array | None:
    return None if a is None else widen(a)


def _beside(a: Array | None, shape: tuple[int, ...]) -> Array | None:
    """A channel's parameter in the shape in which it broadcasts with the input."""
    return None if a is None else a.reshape(shape)


def _over(xp: Any, a: Array, axis: tuple[int, ...]) -> Array:
    return xp.sum(a, axis=axis) if axis else a
