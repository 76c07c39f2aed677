"""Rules of statistics and of running sums of exponentials."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import logical_sizes, to_front
from plugrad.ops.batching.sorting import running_extremum

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def nanmedian(info: VmapInfo, dims: Dims, self: Tensor) -> tuple[Any, Any]:
    count = math.prod(logical_sizes(self, dims[0]))
    flat = F.reshape(to_front(self, dims[0]), (info.batch_size, count))
    if count == 0:
        return F.median(flat.new_zeros((0,))).expand((info.batch_size,)), 0
    return F.nanmedian(flat, 1)[0], 0


RULES: Final[dict[str, Rule]] = {
    "logcumsumexp": running_extremum(F.logcumsumexp),
    "nanmedian": nanmedian,
}
