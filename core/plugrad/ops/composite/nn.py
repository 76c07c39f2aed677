"""Layers as functions, made of the operators that have kernels."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import BatchNorm, Convolution, LayerNorm, Pooling
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, finfo
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.layers.batch_norm import native_batch_norm as native_batch_norm
from plugrad.ops.composite.layers.batch_norm import (
    native_batch_norm_backward as native_batch_norm_backward,
)
from plugrad.ops.composite.layers.batch_norm import (
    native_batch_norm_functional as native_batch_norm_functional,
)
from plugrad.ops.composite.layers.convolution import convolution as convolution
from plugrad.ops.composite.layers.convolution import convolution_backward as convolution_backward
from plugrad.ops.composite.layers.embedding import embedding as embedding
from plugrad.ops.composite.layers.embedding import (
    embedding_dense_backward as embedding_dense_backward,
)
from plugrad.ops.composite.layers.embedding import native_dropout as native_dropout
from plugrad.ops.composite.layers.embedding import one_hot as one_hot
from plugrad.ops.composite.layers.pooling import avg_pool2d as avg_pool2d
from plugrad.ops.composite.layers.pooling import avg_pool2d_backward as avg_pool2d_backward
from plugrad.ops.composite.layers.pooling import max_pool2d_with_indices as max_pool2d_with_indices
from plugrad.ops.composite.layers.pooling import (
    max_pool2d_with_indices_backward as max_pool2d_with_indices_backward,
)
from plugrad.ops.composite.selection.positions import index_tensor
from plugrad.ops.prepare.normalisation import check_normalized_shape, native_layer_norm
from plugrad.ops.prepare.pooling import pair
from plugrad.tensor.base import sizes_of
from plugrad.tensor.creation.allocation import check_memory

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def layer_norm(input: Tensor, settings: LayerNorm, eps: float, cudnn_enable: bool) -> Tensor:
    return C.call_native_layer_norm_with(input, settings, eps)[0]


def native_layer_norm_by_mean(
    input: Tensor, settings: LayerNorm, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    native_layer_norm(input, settings, eps)
    dims = _normalised_dims(input, settings)
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
    dims = _normalised_dims(input, settings)
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


def _normalised_dims(input: Tensor, settings: LayerNorm) -> Ints:
    return tuple(range(input.ndim - len(settings.normalized_shape), input.ndim))


def rms_norm(input: Tensor, settings: LayerNorm, eps: float | None) -> Tensor:
    check_normalized_shape(input, settings)
    weight = settings.weight
    if input.dtype.category < FLOATING:
        raise not_implemented("rms_norm", input.dtype)
    dims = _normalised_dims(input, settings)
    x = widened(input)
    small = finfo(x.dtype).eps if eps is None else eps
    out = x * ((x * x).mean(dim=dims, keepdim=True) + small).rsqrt()
    if weight is not None and weight.dtype is input.dtype:
        out = out * widened(weight)
        weight = None
    out = in_dtype_of(out, input)
    return out if weight is None else out * weight


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    shape = sizes_of(input)
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    channels = shape[1]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups != 0:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(shape)} and num_groups={num_groups}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and sizes_of(parameter) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(sizes_of(parameter))} and input of shape "
                f"{list(shape)}"
            )
    size = channels // num_groups
    for extent in shape[2:]:
        size *= extent
    x = input
    if all(p is None or p.dtype is input.dtype for p in (weight, bias)):
        x = widened(input)
        weight = None if weight is None else widened(weight)
        bias = None if bias is None else widened(bias)
    flat = x.reshape((shape[0], num_groups, size))
    normed = C.call_native_layer_norm(flat, (size,), None, None, eps)[0]
    out = C.call__unsafe_view(normed.contiguous(), shape)
    along = (1, channels) + (1,) * (len(shape) - 2)
    if weight is not None:
        out = out * weight.reshape(along)
    if bias is not None:
        out = out + bias.reshape(along)
    return out if x is input else in_dtype_of(out, input)


def batch_norm(
    input: Tensor, settings: BatchNorm, bias: Tensor | None, momentum: float, cudnn_enabled: bool
) -> Tensor:
    return C.call_native_batch_norm_with(input, settings, bias, momentum)[0]


def _convolve(
    name: str,
    spatial: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    settings: Convolution,
) -> Tensor:
    """With a batch of one around a single input."""
    if weight.ndim != spatial + 2:
        other = weight.ndim - 2
        raise RuntimeError(
            f"expected stride to be a single integer value or a list of {other} values to match "
            f"the convolution dimensions, but got stride={list(settings.stride)}"
        )
    ndim = input.ndim
    if ndim == spatial + 2:
        return C.call_convolution_with(input, weight, bias, settings)
    if ndim != spatial + 1:
        raise RuntimeError(
            f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {name}, but "
            f"got input of size: {list(sizes_of(input))}"
        )
    return C.call_convolution_with(input.unsqueeze(0), weight, bias, settings).squeeze(0)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution) -> Tensor:
    return _convolve("conv1d", 1, input, weight, bias, settings)


def conv1d_padding(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution, padding: str
) -> Tensor:
    return conv1d(_pad(input, weight, settings, padding, 1), weight, bias, settings)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution) -> Tensor:
    return _convolve("conv2d", 2, input, weight, bias, settings)


def conv2d_padding(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution, padding: str
) -> Tensor:
    return conv2d(_pad(input, weight, settings, padding, 2), weight, bias, settings)


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution
) -> Tensor:
    return _convolve("conv_transpose2d", 2, input, weight, bias, settings)


def _pad(
    input: Tensor, weight: Tensor, settings: Convolution, padding: str, spatial: int
) -> Tensor:
    """Gives the settings the padding of both sides; of an odd total the odd element is put behind
    the input beforehand."""
    if padding == "valid":
        return input
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if max(settings.stride) > 1:
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    dilation = settings.dilation
    spread = dilation * spatial if len(dilation) == 1 else dilation
    totals = [spread[i] * (sizes_of(weight)[i + 2] - 1) for i in range(spatial)]
    for i, total in enumerate(totals):
        if total % 2 == 1:
            dim = input.ndim - spatial + i
            shape = list(sizes_of(input))
            shape[dim] = 1
            zeros = F.zeros(tuple(shape), dtype=input.dtype, device=input.device)
            input = F.cat([input, zeros], dim)
    settings.padding = tuple([total // 2 for total in totals])
    return input


def max_pool2d(self: Tensor, settings: Pooling) -> Tensor:
    return C.call_max_pool2d_with_indices_with(self, settings)[0]


def avg_pool1d(self: Tensor, settings: Pooling) -> Tensor:
    """Pooling of images that are one pixel high."""
    if self.ndim != 2 and self.ndim != 3:
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {self.ndim}-dimensional tensor for argument #1 "
            "'self' (while checking arguments for avg_pool1d)"
        )
    how = settings.copy()
    how.kernel_size = (1, *_of_one("kernel_size", settings.kernel_size))
    if settings.stride:
        how.stride = (1, *_of_one("stride", settings.stride))
    how.padding = (0, *_of_one("padding", settings.padding))
    return C.call_avg_pool2d_with(self.unsqueeze(-2), how).squeeze(-2)


def _of_one(name: str, given: Ints) -> Ints:
    if len(given) != 1:
        raise RuntimeError(
            f"avg_pool1d() argument '{name}' should contain one int (got {len(given)})"
        )
    return given


def adaptive_avg_pool2d(self: Tensor, output_size: Ints) -> Tensor:
    rows, columns = pair("adaptive_avg_pool2d: output_size", output_size)
    if rows < 0 or columns < 0:
        raise RuntimeError(
            "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but "
            f"received {{{rows}, {columns}}}"
        )
    if rows == 1 and columns == 1:
        # The mean of each image, however many dimensions there are before it.
        return self.mean(dim=(-2, -1), keepdim=True)
    if self.ndim != 3 and self.ndim != 4:
        raise RuntimeError(
            f"adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {list(sizes_of(self))}"
        )
    for dim in (self.ndim - 2, self.ndim - 1):
        if sizes_of(self)[dim] == 0:
            raise RuntimeError(
                "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch "
                f"dimensions, but input has sizes {list(sizes_of(self))} with dimension {dim} "
                "being empty"
            )
    height, width = sizes_of(self)[-2:]
    if rows > 0 and columns > 0 and height % rows == 0 and width % columns == 0:
        window = (height // rows, width // columns)
        return F.avg_pool2d(self, window, window)
    # The result, and the indices that make it of the different bands.
    images = self.numel() // max(height * width, 1)
    check_memory(images * rows * columns * self.dtype.itemsize + 32 * (rows + columns))
    return _means_of_bands(_means_of_bands(self, -2, rows), -1, columns)


def _means_of_bands(self: Tensor, dim: int, count: int) -> Tensor:
    """The means over `count` bands of a dimension, each different one computed once."""
    if count == 0:
        return self.narrow(dim, 0, 0)
    length = sizes_of(self)[dim]
    places = np.arange(count, dtype=np.int64)
    starts = places * length // count
    ends = -(-(places + 1) * length // count)
    new = np.concatenate(([True], (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])))
    bounds = zip(starts[new].tolist(), ends[new].tolist(), strict=True)
    means = F.stack([self.narrow(dim, a, b - a).mean(dim=dim) for a, b in bounds], dim)
    if sizes_of(means)[dim] == count:
        return means
    return means.index_select(dim, index_tensor(np.cumsum(new) - 1, self))


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
