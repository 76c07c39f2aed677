"""Layers that move elements: upsampling, shuffles, and windows as columns and back."""

from __future__ import annotations

from collections.abc import Sequence

from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.functional import IntOrPair
from plugrad_nn.nn.module import Module


class Upsample(Module):
    """Signals, images and volumes (N, C, ...) of another size.

    Args:
        size: the spatial sizes of the result;
        scale_factor: alternatively, the factor of the input's sizes.
        mode: "nearest", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: keep the values at the corners; not for "nearest".
        recompute_scale_factor: work the factors out from the sizes of the result.

    >>> import plugrad
    >>> plugrad.nn.Upsample(scale_factor=2)(plugrad.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: IntOrPair | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is None:
            return f"size={self.size!r}, mode={self.mode!r}"
        return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images (N, C, H, W) by the nearest element.

    >>> import plugrad
    >>> plugrad.nn.UpsamplingNearest2d(scale_factor=2)(plugrad.ones(1, 3, 4, 4)).shape
    plugrad.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        size: IntOrPair | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear `Upsample` of images (N, C, H, W) that keeps the values at the corners.

    >>> import plugrad
    >>> plugrad.nn.UpsamplingBilinear2d(scale_factor=2)(plugrad.ones(1, 3, 4, 4)).shape
    plugrad.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        size: IntOrPair | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """(N, C * r * r, H, W) as (N, C, H * r, W * r), r the `upscale_factor` (Shi et al. 2016).

    >>> import plugrad
    >>> plugrad.nn.PixelShuffle(2)(plugrad.ones(1, 8, 3, 3)).shape
    plugrad.Size([1, 2, 6, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of `PixelShuffle`: (N, C, H * r, W * r) as (N, C * r * r, H, W).

    >>> import plugrad
    >>> plugrad.nn.PixelUnshuffle(2)(plugrad.ones(1, 2, 6, 6)).shape
    plugrad.Size([1, 8, 3, 3])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Takes one channel of each of `groups` groups in turn; input (N, C, ...).

    >>> import plugrad
    >>> plugrad.nn.ChannelShuffle(2)(plugrad.arange(4.0).reshape(1, 4, 1)).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """The windows of images (N, C, H, W) as columns: (N, C * elements of a window, windows).

    Args:
        kernel_size, dilation, padding, stride: of the windows, as of `Conv2d`.

    >>> import plugrad
    >>> plugrad.nn.Unfold(2)(plugrad.ones(1, 3, 4, 5)).shape
    plugrad.Size([1, 12, 12])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Unfold):
    """Columns as `Unfold` gives them, added up where they were: images of `output_size`.

    >>> import plugrad
    >>> plugrad.nn.Fold((4, 5), 2)(plugrad.ones(1, 12, 12)).shape
    plugrad.Size([1, 3, 4, 5])
    """

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
