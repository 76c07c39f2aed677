"""Rules of operators that copy a tensor with a part replaced, and of the gradient of
`as_strided`."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import first_of, logical_rank, physical, spread, to_front
from plugrad.ops.prepare import slices as prepare
from plugrad.ops.prepare.views import diagonal_dims
from plugrad.tensor.aliasing.strides import reach

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]
Sizes = tuple[int, ...]


def _scatter(function: Callable[..., Any]) -> Rule:
    """The rule of an operator with a dimension and a position to write at."""

    def rule(
        info: VmapInfo, dims: Dims, self: Tensor, src: Tensor, dim: int, *where: Any
    ) -> tuple[Any, Any]:
        place = physical(dim, logical_rank(self, dims[0]))
        target = spread(self, dims[0], info.batch_size)
        return function(target, spread(src, dims[1], info.batch_size), place, *where), 0

    return rule


def diagonal_scatter(
    info: VmapInfo, dims: Dims, self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int
) -> tuple[Any, Any]:
    first, second = diagonal_dims(logical_rank(self, dims[0]), dim1, dim2)
    target = spread(self, dims[0], info.batch_size)
    source = spread(src, dims[1], info.batch_size)
    return F.diagonal_scatter(target, source, offset, first + 1, second + 1), 0


def as_strided_scatter(
    info: VmapInfo,
    dims: Dims,
    self: Tensor,
    src: Tensor,
    size: Sizes,
    stride: Sizes,
    storage_offset: int,
) -> tuple[Any, Any]:
    prepare.as_strided_scatter(
        first_of(self, dims[0]), first_of(src, dims[1]), size, stride, storage_offset
    )
    target = spread(self, dims[0], info.batch_size).contiguous()
    source = spread(src, dims[1], info.batch_size)
    step = target.numel() // max(info.batch_size, 1)
    sizes, steps = (info.batch_size, *size), (step, *stride)
    return F._as_strided_scatter(target, source, sizes, steps, storage_offset), 0


def strided_sum(
    info: VmapInfo,
    dims: Dims,
    self: Tensor,
    size: Sizes,
    stride: Sizes,
    storage_offset: int,
    output_size: Sizes,
    output_stride: Sizes,
    output_offset: int,
) -> tuple[Any, Any]:
    # Each element of the batch has a memory of its own, one behind the other.
    count = max(
        reach(size, stride, storage_offset), reach(output_size, output_stride, output_offset), 1
    )
    return F._strided_sum(
        to_front(self, dims[0]),
        (info.batch_size, *size),
        (count, *stride),
        storage_offset,
        (info.batch_size, *output_size),
        (count, *output_stride),
        output_offset,
    ), 0


RULES: Final[dict[str, Rule]] = {
    "_as_strided_scatter": as_strided_scatter,
    "_strided_sum": strided_sum,
    "diagonal_scatter": diagonal_scatter,
    "select_scatter": _scatter(F.select_scatter),
    "slice_scatter": _scatter(F.slice_scatter),
}
