"""Rules of pooling, which takes images (C, H, W) or (N, C, H, W): what is before C is a batch."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import logical_sizes, spread
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]
Ints = tuple[int, ...]


def _images(info: VmapInfo, x: Tensor, dim: int | None) -> Tensor:
    """(B, C, H, W) as it is; (B, N, C, H, W) as one batch of all images."""
    return _folded(spread(x, dim, info.batch_size))


def _folded(front: Tensor) -> Tensor:
    sizes = sizes_of(front)
    if len(sizes) != 5:
        return front
    return F.reshape(front, (sizes[0] * sizes[1], *sizes[2:]))


def _apart(info: VmapInfo, found: Tensor, sizes: Ints) -> Tensor:
    """Images as they were before they were folded, of these logical sizes but for the last two."""
    return F.reshape(found, (info.batch_size, *sizes[:-2], *sizes_of(found)[-2:]))


def _like(info: VmapInfo, x: Tensor, dim: int | None) -> Tensor:
    """Images of whose elements nothing is asked: only the sizes count."""
    sizes = logical_sizes(x, dim)
    folded = (info.batch_size * math.prod(sizes[:-3]), *sizes[-3:])
    return F.empty(folded, dtype=x.dtype, device=x.device)


def max_pool2d_with_indices(
    info: VmapInfo, dims: Dims, self: Tensor, *window: Any
) -> tuple[Any, Any]:
    sizes = logical_sizes(self, dims[0])
    found, indices = F.max_pool2d_with_indices(_images(info, self, dims[0]), *window)
    return (_apart(info, found, sizes), _apart(info, indices, sizes)), (0, 0)


def max_pool2d_with_indices_backward(
    info: VmapInfo,
    dims: Dims,
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: Tensor,
) -> tuple[Any, Any]:
    found = F.max_pool2d_with_indices_backward(
        _images(info, grad_output, dims[0]),
        _like(info, self, dims[1]),
        kernel_size,
        stride,
        padding,
        dilation,
        ceil_mode,
        _images(info, indices, dims[7]),
    )
    return _apart(info, found, logical_sizes(self, dims[1])), 0


def avg_pool2d(info: VmapInfo, dims: Dims, self: Tensor, *window: Any) -> tuple[Any, Any]:
    found = F.avg_pool2d(_images(info, self, dims[0]), *window)
    return _apart(info, found, logical_sizes(self, dims[0])), 0


def avg_pool2d_backward(
    info: VmapInfo, dims: Dims, grad_output: Tensor, self: Tensor, *window: Any
) -> tuple[Any, Any]:
    if dims[0] is None:
        sizes = logical_sizes(self, dims[1])
        like = F.empty(sizes, dtype=self.dtype, device=self.device)
        return F.avg_pool2d_backward(grad_output, like, *window), None
    grad = _images(info, grad_output, dims[0])
    found = F.avg_pool2d_backward(grad, _like(info, self, dims[1]), *window)
    return _apart(info, found, logical_sizes(self, dims[1])), 0


RULES: Final[dict[str, Rule]] = {
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_backward": avg_pool2d_backward,
    "max_pool2d_with_indices": max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
}
