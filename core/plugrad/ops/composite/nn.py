"""Layers as functions, composed of the operators that have kernels."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import BatchNorm, LayerNorm, Pooling
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.layers.adaptive_pooling import (
    adaptive_avg_pool2d as adaptive_avg_pool2d,
)
from plugrad.ops.composite.layers.batch_norm import native_batch_norm as native_batch_norm
from plugrad.ops.composite.layers.batch_norm import (
    native_batch_norm_backward as native_batch_norm_backward,
)
from plugrad.ops.composite.layers.batch_norm import (
    native_batch_norm_functional as native_batch_norm_functional,
)
from plugrad.ops.composite.layers.convolution import convolution as convolution
from plugrad.ops.composite.layers.convolution import convolution_backward as convolution_backward
from plugrad.ops.composite.layers.convolving import conv1d as conv1d
from plugrad.ops.composite.layers.convolving import conv1d_padding as conv1d_padding
from plugrad.ops.composite.layers.convolving import conv2d as conv2d
from plugrad.ops.composite.layers.convolving import conv2d_padding as conv2d_padding
from plugrad.ops.composite.layers.convolving import conv_transpose2d as conv_transpose2d
from plugrad.ops.composite.layers.embedding import embedding as embedding
from plugrad.ops.composite.layers.embedding import (
    embedding_dense_backward as embedding_dense_backward,
)
from plugrad.ops.composite.layers.embedding import native_dropout as native_dropout
from plugrad.ops.composite.layers.embedding import one_hot as one_hot
from plugrad.ops.composite.layers.group_norm import group_norm as group_norm
from plugrad.ops.composite.layers.group_norm import native_group_norm as native_group_norm
from plugrad.ops.composite.layers.group_norm import (
    native_group_norm_backward as native_group_norm_backward,
)
from plugrad.ops.composite.layers.pooling import avg_pool2d as avg_pool2d
from plugrad.ops.composite.layers.pooling import avg_pool2d_backward as avg_pool2d_backward
from plugrad.ops.composite.layers.pooling import max_pool2d_with_indices as max_pool2d_with_indices
from plugrad.ops.composite.layers.pooling import (
    max_pool2d_with_indices_backward as max_pool2d_with_indices_backward,
)
from plugrad.ops.composite.layers.rms_norm import (
    fused_rms_norm_backward_by_mean as fused_rms_norm_backward_by_mean,
)
from plugrad.ops.composite.layers.rms_norm import fused_rms_norm_by_mean as fused_rms_norm_by_mean
from plugrad.ops.composite.layers.rms_norm import normalised_dims
from plugrad.ops.composite.layers.rms_norm import rms_norm as rms_norm
from plugrad.ops.composite.layers.signals import avg_pool1d as avg_pool1d
from plugrad.ops.prepare.normalisation import native_layer_norm

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def layer_norm(input: Tensor, settings: LayerNorm, eps: float, cudnn_enable: bool) -> Tensor:
    return C.call_native_layer_norm_with(input, settings, eps)[0]


def native_layer_norm_by_mean(
    input: Tensor, settings: LayerNorm, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    native_layer_norm(input, settings, eps)
    dims = normalised_dims(input, settings)
    weight, bias = settings.weight, settings.bias
    x = widened(input)
    mean = x.mean(dim=dims, keepdim=True)
    centered = x - mean
    rstd = ((centered * centered).mean(dim=dims, keepdim=True) + eps).rsqrt()
    out = centered * rstd
    if weight is not None:
        out = out * widened(weight)
    if bias is not None:
        out = out + widened(bias)
    return in_dtype_of(out, input), mean, rstd


def native_layer_norm_backward_by_mean(
    grad: Tensor,
    input: Tensor,
    settings: LayerNorm,
    mean: Tensor,
    rstd: Tensor,
    mask: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    dims = normalised_dims(input, settings)
    first = dims[0]
    weight, bias = settings.weight, settings.bias
    leading = tuple(range(first))
    wide = widened(grad)
    normalized = (widened(input) - mean) * rstd
    to_input: Tensor | None = None
    to_weight: Tensor | None = None
    to_bias: Tensor | None = None
    if mask[0]:
        v = wide if weight is None else wide * widened(weight)
        along = normalized * (v * normalized).mean(dim=dims, keepdim=True)
        to_input = in_dtype_of((v - v.mean(dim=dims, keepdim=True) - along) * rstd, input)
    if mask[1]:
        product = wide * normalized
        summed = product if not leading else product.sum(dim=leading)
        to_weight = in_dtype_of(summed, input if weight is None else weight)
    if mask[2]:
        summed = grad.clone() if not leading else wide.sum(dim=leading)
        to_bias = in_dtype_of(summed, input if bias is None else bias)
    return to_input, to_weight, to_bias


def batch_norm(
    input: Tensor, settings: BatchNorm, bias: Tensor | None, momentum: float, cudnn_enabled: bool
) -> Tensor:
    if input.ndim == 1 and input.numel() == 0:
        return _without_channels(input, settings, bias)
    if input.ndim > 1 and input.shape[1] > 0 and input.numel() == 0:
        return _without_elements(input, settings.weight, bias)
    return C.call_native_batch_norm_with(input, settings, bias, momentum)[0]


def _without_channels(input: Tensor, settings: BatchNorm, bias: Tensor | None) -> Tensor:
    """PyTorch takes a vector only if it is empty; it has 0 channels then."""
    given = (
        ("running_mean", settings.running_mean),
        ("running_var", settings.running_var),
        ("weight", settings.weight),
        ("bias", bias),
    )
    for name, tensor in given:
        if tensor is not None and tensor.numel() != 0:
            raise RuntimeError(f"{name} should contain 0 elements not {tensor.numel()}")
    return input.clone()


def _without_elements(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """There is no mean: the running statistics stay, and the gradients of the vectors are 0."""
    result = input.clone()
    if weight is not None:
        result = result * weight.select(0, 0)
    return result if bias is None else result + bias.select(0, 0)


def max_pool2d(self: Tensor, settings: Pooling) -> Tensor:
    return C.call_max_pool2d_with_indices_with(self, settings)[0]


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0.0 or not train or input.numel() == 0:
        return input
    if p == 1.0:
        return input * F.zeros((), dtype=input.dtype, device=input.device)
    return C.call_native_dropout(input, p, train)[0]


def native_dropout_backward(grad: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad * mask * scale
