"""Batch normalisation in evaluation mode as a part of the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

T = TypeVar("T", bound=Module)


def _copied(layer: T, bn: Any) -> T:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return copy.deepcopy(layer)


def _fused(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    dim: int,
) -> tuple[Parameter, Parameter]:
    """y = (w x + b - mean) / sqrt(variance + eps) * scale + shift as one weight and one bias."""
    dtype = weight.dtype if bias is None else bias.dtype
    learned = bias is not None and bias.requires_grad
    factor = plugrad.rsqrt(variance + eps)
    factor = factor if scale is None else factor * scale
    shape = [1] * weight.ndim
    shape[dim] = -1
    moved = -mean if bias is None else bias - mean
    fused = moved * factor if shift is None else moved * factor + shift
    new_weight = (weight * factor.reshape(shape)).to(weight.dtype).detach()
    return Parameter(new_weight, weight.requires_grad), Parameter(fused.to(dtype).detach(), learned)


@explains
def fuse_conv_bn_eval(conv: T, bn: Module, transpose: bool = False) -> T:
    """A copy of a convolution that includes the batch norm `bn` after it.

    Args:
        conv: the convolution; it and `bn` are in evaluation mode.
        bn: has running statistics.
        transpose: the convolution is a transposed one.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> net = nn.Sequential(nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2)).eval()
    >>> x = plugrad.rand(1, 1, 5)
    >>> plugrad.allclose(nn.utils.fuse_conv_bn_eval(net[0], net[1])(x), net(x), atol=1e-6)
    True
    """
    fused: Any = _copied(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    found: T = fused
    return found


@explains
def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of `fuse_conv_bn_eval`.

    Args:
        conv_w, conv_b: of the convolution; no bias counts as zeros.
        bn_rm, bn_rv: the running mean and variance, (C).
        bn_eps: the number added to the variance.
        bn_w, bn_b: scale and shift, (C); None counts as ones and zeros.
        transpose: the convolution is a transposed one.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> one, zero = plugrad.ones(1), plugrad.zeros(1)
    >>> weight, bias = nn.utils.fuse_conv_bn_weights(
    ...     plugrad.ones(1, 1, 1), None, one, one, 0.0, 2 * one, zero
    ... )
    >>> weight.tolist(), bias.tolist()
    ([[[2.0]]], [-2.0])
    """
    dim = 1 if transpose else 0
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, dim)


@explains
def fuse_linear_bn_eval(linear: T, bn: Module) -> T:
    """A copy of a linear layer that includes the batch norm `bn` after it.

    Args:
        linear: the layer, in evaluation mode.
        bn: the batch norm behind it, likewise.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval()
    >>> x = plugrad.rand(4, 3)
    >>> plugrad.allclose(nn.utils.fuse_linear_bn_eval(net[0], net[1])(x), net(x), atol=1e-6)
    True
    """
    fused: Any = _copied(linear, bn)
    if fused.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={fused.out_features} and bn.num_features={bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    found: T = fused
    return found


@explains
def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of `fuse_linear_bn_eval`.

    Args:
        linear_w, linear_b: of the layer.
        bn_rm, bn_rv, bn_eps, bn_w, bn_b: see `fuse_conv_bn_weights`.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> one, zero = plugrad.ones(1), plugrad.zeros(1)
    >>> weight, bias = nn.utils.fuse_linear_bn_weights(
    ...     plugrad.ones(1, 1), None, one, one, 0.0, 2 * one, zero
    ... )
    >>> weight.tolist(), bias.tolist()
    ([[2.0]], [-2.0])
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)
