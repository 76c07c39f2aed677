"""Rule for the positions in bags, which are searched one element of the batch at a time."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import spread

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo


def places(
    info: VmapInfo, dims: tuple[Any, ...], indices: Tensor, offsets: Tensor, *how: Any
) -> tuple[Any, Any]:
    index = spread(indices, dims[0], info.batch_size)
    starts = spread(offsets, dims[1], info.batch_size)
    if info.batch_size == 0:
        return F.zeros_like(index), 0
    found = [
        F._embedding_bag_places(index.select(0, i), starts.select(0, i), *how)
        for i in range(info.batch_size)
    ]
    return F.stack(found, 0), 0


RULES: Final[dict[str, Rule]] = {"_embedding_bag_places": places}
