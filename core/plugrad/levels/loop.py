"""The fallback of `vmap` for operators without a rule: one call for each element of the batch."""

from __future__ import annotations

from typing import Any, Final

from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.dispatch.settings import settings
from plugrad.levels.arguments import like, values_at
from plugrad.tensor.base import TensorBase
from plugrad.tensor.levels import Level, make_level_tensor, step_in, step_out

_warned: Final[set[str]] = set()


def call_in_loop(
    op: Operator,
    state: LocalState,
    level: Level,
    in_dims: tuple[Any, ...],
    args: tuple[Any, ...],
) -> Any:
    """The results of a call for each element of a batch, stacked; warns once for every operator.

    An operator in place writes into views of its target, and gives the target.
    """
    if settings.warn_always or op.qualified_name not in _warned:
        _warned.add(op.qualified_name)
        warn_at_caller(
            f"vmap: there is no batching rule for {op.qualified_name}, so it is called once for "
            "every element of the batch, which is slow. plugrad.library.register_vmap adds a rule",
            UserWarning,
        )
    values = values_at(args, level)
    stepped = step_out(state, level)
    try:
        turns: list[Any] = []
        for index in range(level.batch_size):
            turn = [_element(v, dim, index) for v, dim in zip(values, in_dims, strict=True)]
            turns.append(op.call(tuple(turn)))
        if op.schema.is_inplace:
            return args[0]
        if not turns:
            raise RuntimeError(
                f"vmap: {op.qualified_name} has no batching rule, and a loop over no elements "
                "cannot determine its result"
            )
        return _stacked(turns, level)
    finally:
        step_in(state, stepped)


def _element(value: Any, dim: Any, index: int) -> Any:
    if isinstance(dim, list):
        items = [_element(item, place, index) for item, place in zip(value, dim, strict=True)]
        return tuple(items) if isinstance(value, tuple) else items
    if dim is None:
        return value
    select: Any = find_operator("plugrad::select.int")
    return select.call((value, dim, index))


def _stacked(turns: list[Any], level: Level) -> Any:
    first = turns[0]
    if isinstance(first, TensorBase):
        stack: Any = find_operator("plugrad::stack")
        return make_level_tensor(stack.call((turns, 0)), level, 0)
    if isinstance(first, (list, tuple)):
        columns = [list(items) for items in zip(*turns, strict=True)]
        return like(first, [_stacked(items, level) for items in columns])
    return first
