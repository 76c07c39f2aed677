"""Operators that move channels of images, by views and permutations, or normalise over them."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING
from plugrad.memory_format import contiguous_format
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _check_image(name: str, self: TensorBase, kind: str, factor: int) -> None:
    if self.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {self.ndim} "
            "dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {kind}, but got {factor}")


def _copied_to(moved: Tensor, size: tuple[int, ...]) -> Tensor:
    """In another shape and row-major, always in new memory."""
    return C.call__unsafe_view(C.call_clone(moved, contiguous_format), size)


def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    _check_image("pixel_shuffle", self, "upscale_factor", upscale_factor)
    r = upscale_factor
    *batch, channels, height, width = sizes_of(self)
    if channels % (r * r) != 0:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    out = channels // (r * r)
    n = len(batch)
    apart = self.reshape((*batch, out, r, r, height, width))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return _copied_to(apart.permute(order), (*batch, out, height * r, width * r))


def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    _check_image("pixel_unshuffle", self, "downscale_factor", downscale_factor)
    r = downscale_factor
    *batch, channels, height, width = sizes_of(self)
    for name, dim, size in (("height", -2, height), ("width", -1, width)):
        if size % r != 0:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={size} is not divisible by {r}"
            )
    n = len(batch)
    apart = self.reshape((*batch, channels, height // r, r, width // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return _copied_to(apart.permute(order), (*batch, channels * r * r, height // r, width // r))


def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    sizes = sizes_of(self)
    if len(sizes) <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(sizes)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if sizes[1] % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {sizes[1]} channels and "
            f"{groups} groups."
        )
    apart = self.reshape((sizes[0], groups, sizes[1] // groups, *sizes[2:]))
    return _copied_to(apart.transpose(1, 2), sizes)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    sizes = sizes_of(input)
    if len(sizes) < 2:
        raise RuntimeError(
            f"instance_norm: expected input of at least 2 dimensions, but got {len(sizes)}"
        )
    if input.dtype.category < FLOATING:
        raise not_implemented("batch_norm", input.dtype)
    batch, channels = sizes[:2]
    given = {
        "running_mean": running_mean,
        "running_var": running_var,
        "weight": weight,
        "bias": bias,
    }
    for name, tensor in given.items():
        if tensor is not None and tensor.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")
    # The channels of all samples side by side.
    side_by_side = [None if t is None else t.repeat((batch,)) for t in given.values()]
    mean, var, scale, shift = side_by_side
    flat = input.reshape((1, batch * channels, *sizes[2:]))
    out = F.batch_norm(flat, scale, shift, mean, var, use_input_stats, momentum, eps)
    if use_input_stats:
        for running, moved in ((running_mean, mean), (running_var, var)):
            if running is not None and moved is not None:
                new: Any = moved.reshape((batch, channels)).mean(dim=(0,))
                running.detach().copy_(new)
    return out.reshape(sizes)
