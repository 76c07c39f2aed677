"""Kernels of normalisation, embedding, dropout and one-hot vectors, one program each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from plugrad.plugins.kernel_errors import OUTSIDE_TABLE, no_one_hot_class
from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.creation import drawing
from plugrad_jax.kernels.index_range import Outside, outside, raise_outside
from plugrad_jax.kernels.placement import require_values
from plugrad_jax.kernels.programs import Array, compiled
from plugrad_jax.sharding.placing import host_of

Mask = tuple[bool, bool, bool]
Shape = tuple[int, ...]


def _wide(a: Array | None) -> Array | None:
    """16-bit floats in float32."""
    return None if a is None else a.astype(jnp.promote_types(a.dtype, jnp.float32))


def _like(part: Array | None, other: Array | None) -> Array | None:
    """A gradient in the dtype of what it is one of."""
    return part if part is None or other is None else part.astype(other.dtype)


@compiled(1)
def layer_norm(
    x: Array, shape: Shape, weight: Array | None, bias: Array | None, eps: Any
) -> tuple[Array, Array, Array]:
    """The normalised input, and mean and 1 / deviation with the normalised dimensions kept as 1.

    Those stay in float32 for 16-bit inputs.
    """
    wide: Any = _wide(x)
    over = tuple(range(x.ndim - len(shape), x.ndim))
    mean = jnp.mean(wide, over, keepdims=True)
    centered = wide - mean
    rstd = lax.rsqrt(jnp.mean(centered * centered, over, keepdims=True) + eps)
    out = centered * rstd
    if weight is not None:
        out *= _wide(weight)
    if bias is not None:
        out += _wide(bias)
    return out.astype(x.dtype), mean, rstd


@compiled(2, 7)
def layer_norm_backward(
    grad: Array,
    x: Array,
    shape: Shape,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    mask: Mask,
) -> tuple[Array | None, Array | None, Array | None]:
    wide: Any = _wide(grad)
    normalized = (_wide(x) - mean) * rstd
    leading = tuple(range(x.ndim - len(shape)))
    over = tuple(range(len(leading), x.ndim))
    to_input = None
    if mask[0]:
        weighted = wide if weight is None else wide * _wide(weight)
        along = jnp.mean(weighted * normalized, over, keepdims=True)
        shift = jnp.mean(weighted, over, keepdims=True)
        to_input = (weighted - (normalized * along + shift)) * rstd
    to_weight = jnp.sum(wide * normalized, leading) if mask[1] else None
    to_bias = jnp.sum(wide, leading) if mask[2] else None
    return _like(to_input, x), _like(to_weight, weight), _like(to_bias, bias)


def _beside(x: Array, parameter: Any) -> Array:
    """A channel's parameter in a shape that broadcasts with the input, no narrower than float32."""
    wide: Any = _wide(parameter)
    return wide.reshape(-1, *(1,) * (x.ndim - 2))


def _over(x: Array) -> Shape:
    return (0, *range(2, x.ndim))


@compiled(5)
def batch_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: Any,
    eps: Any,
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """The normalised input; when training, mean and 1 / deviation of each channel; and the new
    running statistics."""
    wide: Any = _wide(x)
    if training:
        mean = jnp.mean(wide, _over(x))
        centered = wide - _beside(x, mean)
        variance = jnp.mean(centered * centered, _over(x))
        invstd = lax.rsqrt(variance + eps)
        deviation = invstd
        if running_mean is not None:
            running_mean = _moved(running_mean, mean, momentum)
        if running_var is not None:
            # PyTorch keeps the unbiased variance; of a single value that is nan.
            count = x.size // max(x.shape[1], 1)
            unbiased = variance * (count / (count - 1) if count != 1 else math.nan)
            running_var = _moved(running_var, unbiased, momentum)
    else:
        mean = invstd = jnp.zeros(0, wide.dtype)
        centered = wide - _beside(x, running_mean)
        deviation = lax.rsqrt(jnp.asarray(_wide(running_var)) + eps)
    out = centered * _beside(x, deviation)
    if weight is not None:
        out *= _beside(x, weight)
    if bias is not None:
        out += _beside(x, bias)
    return out.astype(x.dtype), mean, invstd, running_mean, running_var


def _moved(running: Array, observed: Array, momentum: Any) -> Array:
    known: Any = _wide(running)
    return (known + (observed - known) * momentum).astype(running.dtype)


@compiled(7, 9)
def batch_norm_backward(
    grad: Array,
    x: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    mean: Array | None,
    invstd: Array | None,
    training: bool,
    eps: Any,
    mask: Mask,
) -> tuple[Array | None, Array | None, Array | None]:
    wide: Any = _wide(grad)
    deviation: Any = invstd
    if not training:
        mean = running_mean
        deviation = lax.rsqrt(jnp.asarray(_wide(running_var)) + eps)
    normalized = (_wide(x) - _beside(x, mean)) * _beside(x, deviation)
    to_bias = jnp.sum(wide, _over(x))
    to_weight = jnp.sum(wide * normalized, _over(x))
    to_input = None
    if mask[0]:
        rest = wide
        if training:
            count = x.size // max(x.shape[1], 1)
            along, shift = (_beside(x, part / count) for part in (to_weight, to_bias))
            rest = wide - (normalized * along + shift)
        scale = _beside(x, deviation)
        to_input = rest * (scale if weight is None else scale * _beside(x, weight))
    return (
        _like(to_input, x),
        _like(to_weight, weight) if mask[1] else None,
        _like(to_bias, weight) if mask[2] else None,
    )


def embedding(weight: Array, indices: Array) -> Array:
    rows, found = _embedding(weight, indices)
    raise_outside(found, OUTSIDE_TABLE, IndexError)
    return rows


@compiled()
def _embedding(weight: Array, indices: Array) -> tuple[Array, Outside]:
    return jnp.take(weight, indices, 0, mode="fill"), outside(indices, weight.shape[0])


@compiled(2, 3, 4)
def embedding_backward(
    grad: Array, indices: Array, rows: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    """Rows of `grad` added up by index."""
    flat = indices.reshape(-1)
    wide: Any = _wide(grad)
    width = grad.shape[-1]
    out = jnp.zeros((rows, width), wide.dtype)
    out = out.at[flat].add(wide.reshape(flat.size, width), mode="drop")
    if scale_grad_by_freq:
        counts = jnp.zeros(rows, wide.dtype).at[flat].add(1, mode="drop")
        out /= jnp.maximum(counts, 1)[:, None]
    if padding_idx >= 0:
        out = out.at[padding_idx].set(0)
    return out.astype(grad.dtype)


def dropout(x: Array, p: float, training: bool, generator: Any) -> tuple[Array, Array]:
    """The input with elements dropped and the others scaled, and the mask of those kept."""
    found: tuple[Array, Array]
    if not training:
        found = _keep_all(x)
    elif p == 1:
        found = _keep_none(x)
    else:
        found = _dropout(generator, x, p)
    return found


@compiled()
def _keep_all(x: Array) -> tuple[Array, Array]:
    return jnp.copy(x), jnp.ones(x.shape, jnp.bool_)


@compiled()
def _keep_none(x: Array) -> tuple[Array, Array]:
    return jnp.zeros_like(x), jnp.zeros(x.shape, jnp.bool_)


@drawing()
def _dropout(key: Any, x: Array, p: Any) -> tuple[Array, Array]:
    kept = jax.random.uniform(key, x.shape, jnp.float32) >= p
    return x * kept * jnp.asarray(1 / (1 - p)).astype(x.dtype), kept


@compiled()
def dropout_backward(grad: Array, kept: Array, scale: Any) -> Array:
    return grad * kept * jnp.asarray(scale).astype(grad.dtype)


def one_hot(indices: Array, classes: int) -> Array:
    if classes == -1:
        require_values(indices, "one_hot", "give it num_classes")
        classes = int(host_of(indices).max()) + 1
    vectors, (bad, first) = _one_hot(indices, classes)
    raise_later(bad, no_one_hot_class, first)
    return vectors


@compiled(1)
def _one_hot(indices: Array, classes: int) -> tuple[Array, Outside]:
    vectors = (indices[..., None] == lax.iota(indices.dtype, classes)).astype(jnp.int64)
    return vectors, outside(indices, classes)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "_native_batch_norm_legit_functional": batch_norm,
    "native_batch_norm_backward": batch_norm_backward,
    "embedding": embedding,
    "embedding_dense_backward": embedding_backward,
    "native_dropout": dropout,
    "native_dropout_backward": dropout_backward,
    "one_hot": one_hot,
}
