"""Rules of pooling, which takes images (C, H, W) or (N, C, H, W): what is before C is a batch."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import Pooling
from plugrad.ops.batching.dims import logical_sizes, spread
from plugrad.ops.batching.table import with_settings
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
    info: VmapInfo, dims: Dims, self: Tensor, settings: Pooling
) -> tuple[Any, Any]:
    sizes = logical_sizes(self, dims[0])
    images = _images(info, self, dims[0])
    found, indices = C.call_max_pool2d_with_indices_with(images, settings)
    return (_apart(info, found, sizes), _apart(info, indices, sizes)), (0, 0)


def max_pool2d_with_indices_backward(
    info: VmapInfo,
    dims: Dims,
    grad_output: Tensor,
    self: Tensor,
    settings: Pooling,
    indices: Tensor,
) -> tuple[Any, Any]:
    found = C.call_max_pool2d_with_indices_backward_with(
        _images(info, grad_output, dims[0]),
        _like(info, self, dims[1]),
        settings,
        _images(info, indices, dims[-1]),
    )
    return _apart(info, found, logical_sizes(self, dims[1])), 0


def avg_pool2d(info: VmapInfo, dims: Dims, self: Tensor, settings: Pooling) -> tuple[Any, Any]:
    found = C.call_avg_pool2d_with(_images(info, self, dims[0]), settings)
    return _apart(info, found, logical_sizes(self, dims[0])), 0


def avg_pool2d_backward(
    info: VmapInfo, dims: Dims, grad_output: Tensor, self: Tensor, settings: Pooling
) -> tuple[Any, Any]:
    if dims[0] is None:
        sizes = logical_sizes(self, dims[1])
        like = F.empty(sizes, dtype=self.dtype, device=self.device)
        return C.call_avg_pool2d_backward_with(grad_output, like, settings), None
    grad = _images(info, grad_output, dims[0])
    found = C.call_avg_pool2d_backward_with(grad, _like(info, self, dims[1]), settings)
    return _apart(info, found, logical_sizes(self, dims[1])), 0


RULES: Final[dict[str, Rule]] = {
    "avg_pool2d": with_settings(avg_pool2d),
    "avg_pool2d_backward": with_settings(avg_pool2d_backward),
    "max_pool2d_with_indices": with_settings(max_pool2d_with_indices),
    "max_pool2d_with_indices_backward": with_settings(max_pool2d_with_indices_backward),
}
