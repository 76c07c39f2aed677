"""Levels that record: `grad` and `jvp`. A call runs on tensors of the level, through its autograd
and forward mode, and is computed one level further out."""

from __future__ import annotations

from typing import Any, NoReturn, final

from mypy_extensions import i64

from plugrad.dispatch.kernel_hooks import keyset_of_arguments
from plugrad.dispatch.keys import AFTER_TRANSFORMS
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.levels.arguments import lifted_values, like, tensors_of, values_at
from plugrad.levels.functional import write_functionally
from plugrad.tensor.base import TensorBase
from plugrad.tensor.levels import FUNCTIONAL, Level, is_at, make_level_tensor, step_in, step_out


def call_recorded(op: Operator, state: LocalState, level: Level, args: tuple[Any, ...]) -> Any:
    """A call at a recording level.

    Raises:
        RuntimeError: it writes to a tensor that is none of the level's.
    """
    if op.schema.mutates and _writes_outside(op, level, args):
        if level.kind != FUNCTIONAL:
            _refuse(op)
        return _write_outside(op, state, level, args)
    if not tensors_of(args):
        stepped = step_out(state, level)
        try:
            out = op.call(args)
        finally:
            step_in(state, stepped)
        return wrap_results(out, level, (), ())
    lifted = lifted_values(args, level)
    below: i64 = keyset_of_arguments(lifted)
    below = (below | state.included) & state.kept & AFTER_TRANSFORMS
    if state.trace is not None:
        return state.trace.dispatch("redispatch", op, below, lifted)
    return op.lookup(below)(below, *lifted)


def _writes_outside(op: Operator, level: Level, args: tuple[Any, ...]) -> bool:
    """Whether a call writes to a tensor that is none of the level's."""
    for argument, value in zip(op.schema.arguments, args, strict=True):
        alias = argument.type.alias
        if alias is None or not alias.is_write:
            continue
        for tensor in tensors_of((value,)):
            if not is_at(tensor, level):
                return True
    return False


def _write_outside(op: Operator, state: LocalState, level: Level, args: tuple[Any, ...]) -> Any:
    """A write to a tensor that a functional level did not get as an argument."""
    for tensor in tensors_of(args):
        if is_at(tensor, level):
            raise RuntimeError(
                f"functionalize(): {op.qualified_name} would write the function's own tensors into "
                "a captured one; hand that one to the function as an argument"
            )
    stepped = step_out(state, level)
    try:
        return op.call(args)
    finally:
        step_in(state, stepped)


def _refuse(op: Operator) -> NoReturn:
    raise RuntimeError(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
        f"in-place operation ({op.qualified_name}) that would mutate a captured Tensor. This is "
        "not supported; please rewrite the function being transformed to explicitly accept the "
        "mutated Tensor(s) as inputs."
    )


@final
class OuterLevelKernel:
    """What an operator computes on tensors of a recording level: itself, one level further out."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.changes_geometry: bool = op.structure == "inplace_view"
        self.mutates: bool = op.schema.mutates

    def __call__(self, keyset: i64, *args: Any) -> Any:
        state = current_state()
        level: Level = state.level
        if level.kind == FUNCTIONAL and self.mutates:
            return write_functionally(self.op, state, level, args)
        values = values_at(args, level)
        stepped = step_out(state, level)
        try:
            out = self.op.call(values)
            if level.copies_views and self.op.schema.is_view:
                out = _copied(out)
        finally:
            step_in(state, stepped)
        if self.changes_geometry:
            target: TensorBase = args[0]
            target._known_sizes = None
            return target
        return wrap_results(out, level, values, args)


def _copied(out: Any) -> Any:
    if isinstance(out, TensorBase):
        clone: Any = find_operator("plugrad::clone")
        return clone(out)
    return like(out, [_copied(item) for item in out])


def wrap_results(out: Any, level: Level, values: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
    """Results as tensors of a level; one that is among `values` is the argument itself."""
    if isinstance(out, TensorBase):
        for value, argument in zip(values, args, strict=True):
            if value is out:
                return argument
        return make_level_tensor(out, level)
    if isinstance(out, (list, tuple)):
        return like(out, [wrap_results(item, level, values, args) for item in out])
    return out


def make_outer_level_kernel(op: Operator) -> OuterLevelKernel:
    return OuterLevelKernel(op)
