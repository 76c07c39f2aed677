"""Random operators inside `vmap`: the same numbers for all elements of a batch, or different ones
for each."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.ops.batching import NO_RANDOMNESS, VmapInfo
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.schema_facts import position_of
from plugrad.tensor.levels import Level, make_level_tensor, step_in, step_out


def draws(op: Operator) -> bool:
    """Whether an operator draws random numbers by itself: it takes a generator."""
    return position_of(op, "Generator") >= 0


def call_random(
    op: Operator, rule: Any, state: LocalState, level: Level, values: tuple[Any, ...]
) -> Any:
    """A random operator without an argument that is mapped over.

    Raises:
        RuntimeError: the level's randomness is "error"; or it is "different", and the operator
            writes into a tensor that all elements share.
    """
    if level.randomness == "error":
        raise RuntimeError(NO_RANDOMNESS)
    stepped = step_out(state, level)
    try:
        if level.randomness == "same":
            return op.call(values)
        if op.schema.mutates:
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
                "will appear like same randomness."
            )
        out = _draw_for_each(op, rule, level, values)
    finally:
        step_in(state, stepped)
    if isinstance(out, (list, tuple)):
        return tuple([make_level_tensor(item, level, 0) for item in out])
    return make_level_tensor(out, level, 0)


def _draw_for_each(op: Operator, rule: Any, level: Level, values: tuple[Any, ...]) -> Any:
    """Results with the batch as first dimension."""
    size = level.batch_size
    for position, argument in enumerate(op.schema.arguments):
        if argument.name == "size":
            sizes: Any = values[position]
            return op.call((*values[:position], (size, *sizes), *values[position + 1 :]))
    if rule is not None:
        expand: Any = find_operator("plugrad::expand")
        batch: list[Any] = []
        dims: list[Any] = []
        for value in values:
            if isinstance(value, TensorBase):
                batch.append(expand.call((value, (size, *sizes_of(value)), False)))
                dims.append(0)
            else:
                batch.append(value)
                dims.append(None)
        if 0 in dims:
            out, out_dims = rule(VmapInfo(size, level.randomness), tuple(dims), *batch)
            return _in_front(out, out_dims)
    stack: Any = find_operator("plugrad::stack")
    turns = [op.call(values) for _ in range(size)]
    if isinstance(turns[0], (list, tuple)):
        return tuple([stack.call((list(items), 0)) for items in zip(*turns, strict=True)])
    return stack.call((turns, 0))


def _in_front(out: Any, out_dims: Any) -> Any:
    if isinstance(out, (list, tuple)):
        return tuple([_in_front(item, dim) for item, dim in zip(out, out_dims, strict=True)])
    if out_dims == 0:
        return out
    movedim: Any = find_operator("plugrad::movedim.int")
    return movedim.call((out, out_dims, 0))
