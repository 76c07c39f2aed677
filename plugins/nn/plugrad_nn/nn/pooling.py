"""Pooling by maxima and means over signals, images and volumes, by windows or by output size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.functional import IntOrPair
from plugrad_nn.nn.looked_up import FunctionOf
from plugrad_nn.nn.module import Module


class _MaxPool(Module):
    """The base of MaxPool1d, 2d and 3d.

    Args:
        kernel_size: of the windows: one integer, or one for each spatial dimension, as below.
        stride: between windows; `kernel_size` by default.
        padding: how many elements at both ends the windows may reach beyond the input.
        dilation: between the elements of a window.
        return_indices: return as well where each value was found, counted row by row.
        ceil_mode: let the last windows reach beyond the end.
    """

    _pool: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return type(self)._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest value of each window of a signal (N, C, L), and on request where it was.

    >>> import plugrad
    >>> plugrad.nn.MaxPool1d(2)(plugrad.ones(1, 3, 8)).shape
    plugrad.Size([1, 3, 4])
    """

    _pool = FunctionOf("max_pool1d")


class MaxPool2d(_MaxPool):
    """The largest value of each window of an image (N, C, H, W), and on request where it was.

    >>> import plugrad
    >>> plugrad.nn.MaxPool2d(2)(plugrad.ones(1, 3, 8, 6)).shape
    plugrad.Size([1, 3, 4, 3])
    """

    _pool = FunctionOf("max_pool2d")


class MaxPool3d(_MaxPool):
    """The largest value of each window of a volume (N, C, D, H, W), and on request where it was.

    >>> import plugrad
    >>> plugrad.nn.MaxPool3d(2)(plugrad.ones(1, 3, 8, 6, 4)).shape
    plugrad.Size([1, 3, 4, 3, 2])
    """

    _pool = FunctionOf("max_pool3d")


class AvgPool1d(Module):
    """The mean of each window of a signal (N, C, L).

    >>> import plugrad
    >>> plugrad.nn.AvgPool1d(2)(plugrad.ones(1, 3, 8)).shape
    plugrad.Size([1, 3, 4])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


def _single(value: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, Iterable) else (value,)


class _AvgPool(Module):
    """The base of AvgPool2d and 3d.

    Args:
        count_include_pad: divide by the size of the window also where it reaches beyond the input.
        divisor_override: divide by this number instead.
    """

    _pool: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of an image (N, C, H, W).

    >>> import plugrad
    >>> plugrad.nn.AvgPool2d(2)(plugrad.ones(1, 3, 8, 6)).shape
    plugrad.Size([1, 3, 4, 3])
    """

    _pool = FunctionOf("avg_pool2d")


class AvgPool3d(_AvgPool):
    """The mean of each window of a volume (N, C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.AvgPool3d(2)(plugrad.ones(1, 3, 8, 6, 4)).shape
    plugrad.Size([1, 3, 4, 3, 2])
    """

    _pool = FunctionOf("avg_pool3d")


class _AdaptiveAvgPool(Module):
    """The base of AdaptiveAvgPool1d, 2d and 3d.

    Args:
        output_size: one integer, or one for each spatial dimension; None keeps the input's.
    """

    _pool: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._pool(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows that together cover a signal (N, C, L).

    >>> import plugrad
    >>> plugrad.nn.AdaptiveAvgPool1d(2)(plugrad.ones(1, 3, 8)).shape
    plugrad.Size([1, 3, 2])
    """

    _pool = FunctionOf("adaptive_avg_pool1d")


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of `output_size` windows that together cover an image (N, C, H, W).

    Args:
        output_size: one integer or (height, width); None keeps the input's.

    >>> import plugrad
    >>> plugrad.nn.AdaptiveAvgPool2d(2)(plugrad.ones(1, 3, 8, 6)).shape
    plugrad.Size([1, 3, 2, 2])
    """

    _pool = FunctionOf("adaptive_avg_pool2d")


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of `output_size` windows that together cover a volume (N, C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.AdaptiveAvgPool3d(2)(plugrad.ones(1, 3, 8, 6, 4)).shape
    plugrad.Size([1, 3, 2, 2, 2])
    """

    _pool = FunctionOf("adaptive_avg_pool3d")


class _AdaptiveMaxPool(Module):
    """The base of AdaptiveMaxPool1d, 2d and 3d.

    Args:
        output_size: one integer, or one for each spatial dimension; None keeps the input's.
        return_indices: return as well where each value was found, counted row by row.
    """

    _pool: ClassVar[Callable[..., Any]]

    def __init__(
        self, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return type(self)._pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maxima of `output_size` windows that together cover a signal (N, C, L).

    >>> import plugrad
    >>> plugrad.nn.AdaptiveMaxPool1d(2)(plugrad.ones(1, 3, 8)).shape
    plugrad.Size([1, 3, 2])
    """

    _pool = FunctionOf("adaptive_max_pool1d")


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of `output_size` windows that together cover an image (N, C, H, W).

    >>> import plugrad
    >>> plugrad.nn.AdaptiveMaxPool2d(2)(plugrad.ones(1, 3, 8, 6)).shape
    plugrad.Size([1, 3, 2, 2])
    """

    _pool = FunctionOf("adaptive_max_pool2d")


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maxima of `output_size` windows that together cover a volume (N, C, D, H, W).

    >>> import plugrad
    >>> plugrad.nn.AdaptiveMaxPool3d(2)(plugrad.ones(1, 3, 8, 6, 4)).shape
    plugrad.Size([1, 3, 2, 2, 2])
    """

    _pool = FunctionOf("adaptive_max_pool3d")
