"""The public convolutions: of one input or a batch, with padding as numbers or as a word."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import Convolution
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _convolve(
    name: str,
    spatial: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    settings: Convolution,
    padding: str | None = None,
) -> Tensor:
    """With a batch of one around a single input."""
    if weight.ndim != spatial + 2:
        other = weight.ndim - 2
        raise RuntimeError(
            f"expected stride to be a single integer value or a list of {other} values to match "
            f"the convolution dimensions, but got stride={list(settings.stride)}"
        )
    ndim = input.ndim
    if ndim != spatial + 2 and ndim != spatial + 1:
        raise RuntimeError(
            f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {name}, but "
            f"got input of size: {list(sizes_of(input))}"
        )
    if padding is not None:
        input = _pad(input, weight, settings, padding, spatial)
    if ndim == spatial + 2:
        return C.call_convolution_with(input, weight, bias, settings)
    return C.call_convolution_with(input.unsqueeze(0), weight, bias, settings).squeeze(0)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution) -> Tensor:
    return _convolve("conv1d", 1, input, weight, bias, settings)


def conv1d_padding(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution, padding: str
) -> Tensor:
    return _convolve("conv1d", 1, input, weight, bias, settings, padding)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution) -> Tensor:
    return _convolve("conv2d", 2, input, weight, bias, settings)


def conv2d_padding(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution, padding: str
) -> Tensor:
    return _convolve("conv2d", 2, input, weight, bias, settings, padding)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution) -> Tensor:
    return _convolve("conv3d", 3, input, weight, bias, settings)


def conv3d_padding(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution, padding: str
) -> Tensor:
    return _convolve("conv3d", 3, input, weight, bias, settings, padding)


def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution
) -> Tensor:
    return _convolve("conv_transpose1d", 1, input, weight, bias, settings)


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution
) -> Tensor:
    return _convolve("conv_transpose2d", 2, input, weight, bias, settings)


def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None, settings: Convolution
) -> Tensor:
    return _convolve("conv_transpose3d", 3, input, weight, bias, settings)


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
