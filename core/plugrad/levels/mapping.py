"""Maps a function of tensors over a dimension of each, for `vmap` and batched gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import find_operator
from plugrad.levels.batching import batch_dim_of
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.levels import (
    VMAP,
    Level,
    living,
    make_level_tensor,
    pop_level,
    push_level,
    step_in,
    step_out,
    value_at,
)


def map_flat(
    function: Callable[[list[Any]], list[Any]],
    inputs: list[Any],
    in_dims: list[int | None],
    batch_size: int,
    randomness: str = "error",
) -> list[Any]:
    """`function` of all slices of `inputs` at once.

    Args:
        function: takes the slices and gives tensors, or None.
        in_dims: the dimension of each input that is mapped over, from 0 on; None: not mapped.

    Returns:
        What the function gave, with the batch as first dimension.
    """
    level = push_level(VMAP, batch_size, randomness)
    try:
        slices = [
            value if dim is None else make_level_tensor(value, level, dim)
            for value, dim in zip(inputs, in_dims, strict=True)
        ]
        outputs = function(slices)
        return [None if out is None else batch_of(out, level, 0) for out in outputs]
    finally:
        pop_level(level)


def batch_of(output: TensorBase, level: Level, out_dim: int) -> TensorBase:
    """An output of the function that a level maps, one level further out: with the batch at
    `out_dim`, expanded to it if the output is the same for all elements.

    Raises:
        IndexError: there is no such dimension.
    """
    output = living(output)
    dim = batch_dim_of(output, level)
    value = value_at(output, level)
    state = current_state()
    stepped = step_out(state, level)
    try:
        ndim = len(sizes_of(value)) + (dim is None)
        place = out_dim + ndim if out_dim < 0 else out_dim
        if not 0 <= place < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but "
                f"got {out_dim})"
            )
        if dim is None:
            sizes = sizes_of(value)
            shape = (*sizes[:place], level.batch_size, *sizes[place:])
            unsqueeze: Any = find_operator("plugrad::unsqueeze")
            expand: Any = find_operator("plugrad::expand")
            expanded: TensorBase = expand.call((unsqueeze.call((value, place)), shape, False))
            return expanded
        if dim == place:
            return value
        movedim: Any = find_operator("plugrad::movedim.int")
        moved: TensorBase = movedim.call((value, dim, place))
        return moved
    finally:
        step_in(state, stepped)
