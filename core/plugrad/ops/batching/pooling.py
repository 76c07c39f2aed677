"""Rules of pooling, which takes images (C, H, W) or (N, C, H, W), or volumes (C, D, H, W) or (N, C,
D, H, W): the dimensions before C are a batch."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from collections.abc import Callable
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
Call = Callable[..., Any]


def _images(info: VmapInfo, x: Tensor, dim: int | None, spatial: int) -> Tensor:
    """(B, C, *sizes) as it is; (B, N, C, *sizes) as one batch of all images."""
    front = spread(x, dim, info.batch_size)
    sizes = sizes_of(front)
    if len(sizes) == spatial + 2:
        return front
    return F.reshape(front, (sizes[0] * sizes[1], *sizes[2:]))


def _apart(info: VmapInfo, found: Tensor, given: Ints, more: int = 0) -> Tensor:
    """What images of sizes `given` became, as it was before they were folded.

    Args:
        more: how many dimensions the result has more than they.
    """
    sizes = sizes_of(found)
    if len(sizes) == len(given) + more + 1:
        return found
    return F.reshape(found, (info.batch_size, given[0], *sizes[1:]))


def _like(info: VmapInfo, x: Tensor, dim: int | None, spatial: int) -> Tensor:
    """Images that are used only for their sizes."""
    sizes = logical_sizes(x, dim)
    split = len(sizes) - spatial - 1
    folded = (info.batch_size * math.prod(sizes[:split]), *sizes[split:])
    return F.empty(folded, dtype=x.dtype, device=x.device)


def _max_pool(call: Call, spatial: int) -> Rule:
    def rule(info: VmapInfo, dims: Dims, self: Tensor, settings: Pooling) -> tuple[Any, Any]:
        sizes = logical_sizes(self, dims[0])
        found, indices = call(_images(info, self, dims[0], spatial), settings)
        return (_apart(info, found, sizes), _apart(info, indices, sizes)), (0, 0)

    return rule


def _max_pool_backward(call: Call, spatial: int) -> Rule:
    def rule(
        info: VmapInfo,
        dims: Dims,
        grad_output: Tensor,
        self: Tensor,
        settings: Pooling,
        indices: Tensor,
    ) -> tuple[Any, Any]:
        found = call(
            _images(info, grad_output, dims[0], spatial),
            _like(info, self, dims[1], spatial),
            settings,
            _images(info, indices, dims[-1], spatial),
        )
        return _apart(info, found, logical_sizes(self, dims[1])), 0

    return rule


def _avg_pool(call: Call, spatial: int) -> Rule:
    def rule(info: VmapInfo, dims: Dims, self: Tensor, settings: Pooling) -> tuple[Any, Any]:
        found = call(_images(info, self, dims[0], spatial), settings)
        return _apart(info, found, logical_sizes(self, dims[0])), 0

    return rule


def _avg_pool_backward(call: Call, spatial: int) -> Rule:
    def rule(
        info: VmapInfo, dims: Dims, grad_output: Tensor, self: Tensor, settings: Pooling
    ) -> tuple[Any, Any]:
        sizes = logical_sizes(self, dims[1])
        if dims[0] is None:
            like = F.empty(sizes, dtype=self.dtype, device=self.device)
            return call(grad_output, like, settings), None
        grad = _images(info, grad_output, dims[0], spatial)
        found = call(grad, _like(info, self, dims[1], spatial), settings)
        return _apart(info, found, sizes), 0

    return rule


def col2im(
    info: VmapInfo, dims: Dims, self: Tensor, output_size: Ints, settings: Pooling
) -> tuple[Any, Any]:
    columns = _images(info, self, dims[0], 1)
    found = C.call_col2im_with(columns, output_size, settings)
    return _apart(info, found, logical_sizes(self, dims[0]), 1), 0


def im2col(info: VmapInfo, dims: Dims, self: Tensor, settings: Pooling) -> tuple[Any, Any]:
    found = C.call_im2col_with(_images(info, self, dims[0], 2), settings)
    return _apart(info, found, logical_sizes(self, dims[0]), -1), 0


def _rules() -> dict[str, Rule]:
    made: dict[str, Rule] = {"col2im": with_settings(col2im), "im2col": with_settings(im2col)}
    for name, make in (
        ("avg_pool{}d", _avg_pool),
        ("avg_pool{}d_backward", _avg_pool_backward),
        ("max_pool{}d_with_indices", _max_pool),
        ("max_pool{}d_with_indices_backward", _max_pool_backward),
    ):
        for spatial in (2, 3):
            operator = name.format(spatial)
            rule = make(getattr(C, f"call_{operator}_with"), spatial)
            rule.__name__ = operator
            made[operator] = with_settings(rule)
    return made


RULES: Final[dict[str, Rule]] = _rules()
