"""Tangents of normalisation and convolution.

A normalisation is y = x * weight + bias with x = (input - mean) * rstd, the normalised input. Along
a tangent t of the input, x changes by P(t) = rstd * (t - mean(t) - x * mean(x * t)), and by rstd *
t if mean and deviation are given. Without centering, as in rms_norm, x = input * rstd, and P has no
mean(t).
"""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import BatchNorm, Convolution, GroupNorm, LayerNorm
from plugrad.graph.forward_rule import plus
from plugrad.ops.formulas.nn import again_normalised
from plugrad.ops.prepare.normalisation import beside_groups, by_group
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


@dataclass
class _Normalised:
    """A normalised input, and how it changes.

    Attributes:
        x: the normalised input.
        rstd: the reciprocal deviation.
        dims: the dimensions of the statistics; None if mean and deviation are given.
        centered: whether the mean was subtracted.
    """

    x: Tensor
    rstd: Tensor
    dims: Ints | None
    centered: bool = True

    def mean(self, t: Tensor) -> Any:
        return t.mean(dim=self.dims, keepdim=True)

    def project(self, t: Tensor) -> Any:
        """P(t): how x changes along a tangent of the input."""
        if self.dims is None:
            return t * self.rstd
        rest = t - self.mean(t) if self.centered else t
        return (rest - self.x * self.mean(self.x * t)) * self.rstd

    def change_of_rstd(self, t: Tensor) -> Any:
        """How the reciprocal deviation changes, in units of itself."""
        return None if self.dims is None else -(self.rstd * self.mean(self.x * t))

    def tangent_of_rstd(self, t: Tensor) -> Any:
        return self.change_of_rstd(t) * self.rstd

    def backward_tangent(self, v: Tensor, v_t: Any, t: Any) -> Any:
        """The tangent of P(v), the gradient toward the input, along v_t and the input's t."""
        total = None if v_t is None else self.project(v_t)
        if t is None or self.dims is None:
            return total
        x_t = self.project(t)
        change = self.change_of_rstd(t)
        moved = x_t * self.mean(self.x * v) + self.x * self.mean(x_t * v)
        return plus(total, self.project(v) * change - moved * self.rstd)


def _by_input(input: Tensor, dims: Ints, eps: Any) -> _Normalised:
    centered = input - input.mean(dim=dims, keepdim=True)
    rstd = ((centered * centered).mean(dim=dims, keepdim=True) + eps).rsqrt()
    return _Normalised(centered * rstd, rstd, dims)


def _layer_norm(
    input: Tensor, normalized_shape: Ints, rstd: Tensor, centered: bool = True
) -> _Normalised:
    ndim = input.ndim
    return _again(input, rstd, tuple(range(ndim - len(normalized_shape), ndim)), centered)


def _again(input: Tensor, rstd: Tensor, dims: Ints, centered: bool) -> _Normalised:
    x = input - input.mean(dim=dims, keepdim=True) if centered else input
    return _Normalised(*again_normalised(x, rstd, dims), dims, centered)


def _group_norm(input: Tensor, rstd: Tensor, settings: GroupNorm) -> _Normalised:
    """The normalised input as (N, groups, channels of one, elements)."""
    shape = by_group(settings)
    return _again(input.reshape(shape), rstd.reshape((*shape[:2], 1, 1)), (2, 3), True)


def _batch_norm(input: Tensor, settings: BatchNorm) -> tuple[_Normalised, Ints, Ints]:
    """With the dimensions of the statistics, and the shape of values per channel."""
    running_mean, running_var = settings.running_mean, settings.running_var
    over = (0, *range(2, input.ndim))
    shape = (1, -1) + (1,) * (input.ndim - 2)
    if settings.training or running_mean is None or running_var is None:
        return _by_input(input, over, settings.eps), over, shape
    rstd = (running_var + settings.eps).rsqrt().reshape(shape)
    return _Normalised((input - running_mean.reshape(shape)) * rstd, rstd, None), over, shape


def _affine_tangent(form: _Normalised, t: Any, weight: Any, weight_t: Any, bias_t: Any) -> Any:
    total = None
    if t is not None:
        total = form.project(t)
        if weight is not None:
            total = total * weight
    if weight_t is not None:
        total = plus(total, form.x * weight_t)
    return plus(total, bias_t)


def layer_norm_tangents(
    t: Any,
    weight_t: Any,
    bias_t: Any,
    input: Tensor,
    settings: LayerNorm,
    mean: Tensor,
    rstd: Tensor,
) -> tuple[Any, Any, Any]:
    form = _layer_norm(input, settings.normalized_shape, rstd)
    total = _affine_tangent(form, t, settings.weight, weight_t, bias_t)
    if t is None:
        return total, F.zeros_like(mean), F.zeros_like(rstd)
    return total, form.mean(t), form.tangent_of_rstd(t)


def rms_norm_tangents(
    t: Any, weight_t: Any, input: Tensor, settings: LayerNorm, rstd: Tensor
) -> tuple[Any, Any]:
    form = _layer_norm(input, settings.normalized_shape, rstd, centered=False)
    total = _affine_tangent(form, t, settings.weight, weight_t, None)
    return total, F.zeros_like(rstd) if t is None else form.tangent_of_rstd(t)


def group_norm_tangents(
    t: Any,
    weight_t: Any,
    bias_t: Any,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    settings: GroupNorm,
) -> tuple[Any, Any, Any]:
    shape, beside = by_group(settings), beside_groups(settings)
    form = _group_norm(input, rstd, settings)
    t = _shaped(t, shape)
    affine = (settings.weight, weight_t, bias_t)
    total = _affine_tangent(form, t, *(_shaped(x, beside) for x in affine))
    if t is None:
        total = total.expand(shape)
    total = total.reshape(sizes_of(input))
    if t is None:
        return total, F.zeros_like(mean), F.zeros_like(rstd)
    statistics = (form.mean(t), form.tangent_of_rstd(t))
    return total, *(_shaped(x, sizes_of(mean)) for x in statistics)


def batch_norm_tangent(
    t: Any, weight_t: Any, bias_t: Any, input: Tensor, settings: BatchNorm
) -> Any:
    form, _, shape = _batch_norm(input, settings)
    weights = (settings.weight, weight_t, bias_t)
    return _affine_tangent(form, t, *(_shaped(x, shape) for x in weights))


def _shaped(x: Any, shape: Ints) -> Any:
    return None if x is None else x.reshape(shape)


def layer_norm_backward_tangents(
    grad_t: Any,
    t: Any,
    weight_t: Any,
    grad: Tensor,
    input: Tensor,
    settings: LayerNorm,
    rstd: Tensor,
    mask: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    shape = settings.normalized_shape
    form = _layer_norm(input, shape, rstd)
    over = tuple(range(input.ndim - len(shape)))
    weights = (weight_t, grad, settings.weight)
    return _backward_tangents(form, grad_t, t, *weights, over, shape, mask)


def rms_norm_backward_tangents(
    grad_t: Any,
    t: Any,
    weight_t: Any,
    grad: Tensor,
    input: Tensor,
    settings: LayerNorm,
    rstd: Tensor,
    mask: tuple[bool, ...],
) -> tuple[Any, Any]:
    shape = settings.normalized_shape
    form = _layer_norm(input, shape, rstd, centered=False)
    over = tuple(range(input.ndim - len(shape)))
    weights = (weight_t, grad, settings.weight)
    wanted = (*mask, False)
    return _backward_tangents(form, grad_t, t, *weights, over, shape, wanted)[:2]


def group_norm_backward_tangents(
    grad_t: Any,
    t: Any,
    weight_t: Any,
    grad: Tensor,
    input: Tensor,
    rstd: Tensor,
    settings: GroupNorm,
    mask: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    shape, beside = by_group(settings), beside_groups(settings)
    form = _group_norm(input, rstd, settings)
    grad_t, t, grad = (_shaped(x, shape) for x in (grad_t, t, grad))
    weights = (_shaped(weight_t, beside), grad, _shaped(settings.weight, beside))
    over, channels = (0, 3), (settings.C,)
    found = _backward_tangents(form, grad_t, t, *weights, over, channels, mask)
    return _shaped(found[0], sizes_of(input)), found[1], found[2]


def batch_norm_backward_tangents(
    grad_t: Any,
    t: Any,
    weight_t: Any,
    grad: Tensor,
    input: Tensor,
    settings: BatchNorm,
    mask: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    form, over, shape = _batch_norm(input, settings)
    weights = (_shaped(weight_t, shape), grad, _shaped(settings.weight, shape))
    return _backward_tangents(form, grad_t, t, *weights, over, (input.shape[1],), mask)


def _backward_tangents(
    form: _Normalised,
    grad_t: Any,
    t: Any,
    weight_t: Any,
    grad: Tensor,
    weight: Any,
    over: Ints,
    parameter_shape: Ints,
    mask: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    """The tangents of the gradients P(grad * weight), sum(grad * x) and sum(grad)."""
    to_input: Any = None
    to_weight: Any = None
    to_bias: Any = None
    if mask[0]:
        v = grad if weight is None else grad * weight
        v_t = grad_t if grad_t is None or weight is None else grad_t * weight
        if weight_t is not None:
            v_t = plus(v_t, grad * weight_t)
        to_input = form.backward_tangent(v, v_t, t)
    if mask[1]:
        product = None if grad_t is None else grad_t * form.x
        if t is not None:
            product = plus(product, grad * form.project(t))
        to_weight = _summed(product, over, parameter_shape)
    if mask[2]:
        to_bias = _summed(grad_t, over, parameter_shape)
    return to_input, to_weight, to_bias


def _summed(x: Any, over: Ints, shape: Ints) -> Any:
    if x is None:
        return None
    return (x.sum(dim=over) if over else x).reshape(shape)


def convolution_tangent(input: Tensor, weight: Tensor, settings: Convolution) -> Any:
    """A convolution is linear in each of its factors."""
    return C.call_convolution_with(input, weight, None, settings)


def convolution_backward_tangents(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    settings: Convolution,
    mask: tuple[bool, ...],
    output: int,
) -> tuple[Any, Any, Any]:
    """The tangents of one of the gradients toward input and weight, which is linear in the other's
    factor."""
    if not mask[output]:
        return None, None, None
    wanted = (output == 0, output == 1, False)
    found = C.call_convolution_backward_with(grad_output, input, weight, None, settings, wanted)
    return (found[0], None, None) if output == 0 else (None, found[1], None)
