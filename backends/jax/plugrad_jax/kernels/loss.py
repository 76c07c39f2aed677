"""Kernels of loss functions and their gradients, each one program; 16-bit floats in float32."""

from __future__ import annotations

from typing import Any, Final

import jax.numpy as jnp
from jax import lax

from plugrad.plugins.kernel_errors import NO_PROBABILITIES, NO_TARGETS, no_class
from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.programs import Array, Kernel, constant, in_float32, program, widen


def _reduced(losses: Array, reduction: str) -> Array:
    if reduction == "none":
        return losses
    total = jnp.sum(losses)
    return total / constant(losses.size, total) if reduction == "mean" else total


def _class_dim(x: Array) -> int:
    return 1 if x.ndim > 1 else 0


def _known_targets(x: Array, target: Array, ignore_index: int) -> tuple[Array, Array, Array]:
    """Targets with the ignored ones made class 0, which ones count, and which are not a class."""
    known = target != ignore_index
    safe = jnp.where(known, target, 0)
    return safe, known, (safe < 0) | (safe >= x.shape[_class_dim(x)])


def _nll_loss(
    x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
) -> tuple[Array, Array, Array, Array]:
    """The loss, the sum of the weights of the targets that count, whether a target is not a class,
    and the first such target."""
    dtype, x = x.dtype, widen(x)
    if x.ndim == 1 and reduction != "none":
        target = target.reshape(())
    dim = _class_dim(x)
    safe, known, bad = _known_targets(x, target, ignore_index)
    at = jnp.expand_dims(safe, dim) if x.ndim > 1 else safe.reshape(-1)
    picked = jnp.take_along_axis(x, at, dim, mode="clip").reshape(target.shape)
    one, zero = constant(1, x), constant(0, x)
    factors = one if weight is None else jnp.take(widen(weight), safe, mode="clip")
    factors = jnp.where(known, factors, zero)
    losses = jnp.where(known, -picked * factors, zero)
    total = jnp.sum(factors)
    if reduction != "none":
        losses = jnp.sum(losses) / total if reduction == "mean" else jnp.sum(losses)
    if safe.size:
        first = safe.reshape(-1)[jnp.argmax(bad.reshape(-1))]
    else:
        first = jnp.zeros((), safe.dtype)
    return losses.astype(dtype), total.astype(dtype), jnp.any(bad), first


_nll_loss_program: Final = program(_nll_loss, 3, 4)


def nll_loss_forward(
    x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
) -> tuple[Array, Array]:
    """The loss, and the sum of the weights of the targets that count."""
    loss, total, bad, first = _nll_loss_program(x, target, weight, reduction, ignore_index)
    raise_later(bad, lambda target: no_class(int(target)), first)
    return loss, total


def _nll_loss_backward(
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    dtype, x = x.dtype, widen(x)
    if x.ndim == 1 and reduction != "none":
        target = target.reshape(())
    safe, known, _ = _known_targets(x, target, ignore_index)
    share = -widen(grad)
    if reduction == "mean":
        share = share / widen(total_weight)
    if weight is not None:
        share = share * jnp.take(widen(weight), safe, mode="clip")
    share = jnp.where(known, share, constant(0, x))
    dim = _class_dim(x)
    # Every element is written anyway, so a comparison is cheaper than a scatter.
    classes = lax.broadcasted_iota(target.dtype, x.shape, dim)
    if x.ndim > 1:
        safe, share = jnp.expand_dims(safe, dim), jnp.expand_dims(share, dim)
    return jnp.where(classes == safe, share, constant(0, x)).astype(dtype)


def _mse_loss(a: Array, b: Array, reduction: str) -> Array:
    return _reduced(jnp.square(a - b), reduction)


def _mse_loss_backward(grad: Array, a: Array, b: Array, reduction: str) -> Array:
    difference = a - b
    factor = 2.0 / max(difference.size, 1) if reduction == "mean" else 2.0
    return difference * (grad * constant(factor, a))


def _binary_cross_entropy(x: Array, target: Array, weight: Any, reduction: str) -> Array:
    one, least = constant(1, x), constant(-100, x)
    losses = (target - one) * jnp.maximum(jnp.log1p(-x), least)
    losses = losses - target * jnp.maximum(jnp.log(x), least)
    return _reduced(losses if weight is None else losses * weight, reduction)


def _checked_cross_entropy(
    x: Array, target: Array, weight: Any, reduction: str
) -> tuple[Array, Array, Array]:
    bad = jnp.stack([~jnp.all((y >= 0) & (y <= 1)) for y in (x, target)])
    return in_float32(_binary_cross_entropy)(x, target, weight, reduction), bad.any(), bad


_cross_entropy_program: Final = program(_checked_cross_entropy, 3)


def _not_in_unit(bad: Any) -> Exception:
    return RuntimeError(NO_PROBABILITIES if bad[0] else NO_TARGETS)


def binary_cross_entropy(x: Array, target: Array, weight: Array | None, reduction: str) -> Array:
    loss, bad, which = _cross_entropy_program(x, target, weight, reduction)
    raise_later(bad, _not_in_unit, which)
    return loss


def _binary_cross_entropy_backward(
    x: Array, grad: Array, target: Array, weight: Array | None, reduction: str
) -> Array:
    spread = jnp.maximum((constant(1, x) - x) * x, constant(1e-12, x))
    out = (x - target) / spread
    if weight is not None:
        out = out * weight
    return out * (grad / constant(x.size, x) if reduction == "mean" else grad)


def _bce_with_logits(
    x: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Array:
    """(1 - t) * x + p * (max(-x, 0) + log1p(exp(-|x|))), with p = 1 + (pos_weight - 1) * t."""
    one = constant(1, x)
    softplus = jnp.log1p(jnp.exp(-jnp.abs(x))) + jnp.maximum(-x, constant(0, x))
    if pos_weight is not None:
        softplus = softplus * (one + (pos_weight - one) * target)
    losses = (one - target) * x + softplus
    return _reduced(losses if weight is None else losses * weight, reduction)


def _by_input(function: Kernel) -> Kernel:
    """A gradient, which gets `grad` first, with the dtype of the input deciding."""
    wide = in_float32(function)
    return lambda grad, x, *rest: wide(x, grad, *rest)


KERNELS: Final[dict[str, Kernel]] = {
    "nll_loss_forward": nll_loss_forward,
    "nll_loss_backward": program(_nll_loss_backward, 4, 5),
    "mse_loss": program(in_float32(_mse_loss), 2),
    "mse_loss_backward": program(in_float32(_mse_loss_backward), 3),
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_backward": program(_by_input(_binary_cross_entropy_backward), 4),
    "binary_cross_entropy_with_logits": program(in_float32(_bce_with_logits), 4),
}
