"""Forward mode of `autograd.Function`: its `jvp` computes the tangents of its outputs.

`forward` runs with forward mode off, and `jvp` after it, with the tangents of the arguments.
"""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.autograd.function.node import FunctionNode
from plugrad.dispatch.keys import FORWARD_AD_BIT
from plugrad.dispatch.local_state import LocalState
from plugrad.dtype import FLOATING
from plugrad.graph.dual_tensors import check_sizes, find_tangent
from plugrad.graph.forward_kernel import give_tangent
from plugrad.graph.support import operators
from plugrad.tensor.base import TensorBase, version_of
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.dual import ForwardLevel

NOT_IN_PLACE: Final = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the "
    "forward is modifying an input inplace, then the jvp function must modify the corresponding "
    "gradient inplace."
)
NOT_A_VIEW: Final = (
    "A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
    "returning a view."
)
VIEW_OF_SOMETHING_ELSE: Final = (
    "A custom Function is returning a view but the jvp is not returning a view of the given grad "
    "input."
)


@final
class ForwardPass:
    """The record of a Function's arguments that is kept until `jvp` runs.

    Attributes:
        level: the level of the tangents.
        tangents: one per argument, None where there is none.
        versions: how often each tangent was written to before `jvp` runs.
        dirty, constant: what `forward` marked, by id.
    """

    def __init__(self, level: ForwardLevel, tangents: list[TensorBase | None]) -> None:
        self.level = level
        self.tangents = tangents
        self.versions: list[int] = []
        self.dirty: list[int] = []
        self.constant: list[int] = []

    def note_marks(self, ctx: FunctionNode) -> None:
        """Copy the marks from `ctx`, which is about to drop them."""
        if isinstance(ctx.dirty_tensors, tuple):
            self.dirty = [id(tensor) for tensor in ctx.dirty_tensors]
        if isinstance(ctx.non_differentiable, tuple):
            self.constant = [id(tensor) for tensor in ctx.non_differentiable]


def begin(state: LocalState, args: tuple[Any, ...]) -> ForwardPass | None:
    """The tangents of the arguments, if there are any."""
    if state.kept & FORWARD_AD_BIT == 0:
        return None
    level: ForwardLevel | None = None
    tangents: list[TensorBase | None] = []
    for value in args:
        found = find_tangent(value) if isinstance(value, TensorBase) else None
        if found is None:
            tangents.append(None)
        else:
            level = found.level
            tangents.append(found.value)
    return None if level is None else ForwardPass(level, tangents)


def finish(
    forward: ForwardPass,
    ctx: FunctionNode,
    state: LocalState,
    args: tuple[Any, ...],
    given: tuple[Any, ...],
    outputs: tuple[Any, ...],
) -> None:
    """Call `jvp`, with forward mode off, and give its results to the outputs.

    Args:
        given: what `forward` returned.
        outputs: what users get in its place.

    Raises:
        RuntimeError: `jvp` returned something else than one tangent for each output that has one.
    """
    kept = state.kept
    state.kept = kept & ~FORWARD_AD_BIT
    try:
        inputs = _inputs_of_jvp(ctx, args, forward.tangents)
        forward.versions = [0 if item is None else version_of(item) for item in forward.tangents]
        user: Any = ctx
        result: Any = user.apply_jvp(*inputs)
        tangents = result if isinstance(result, tuple) else (result,)
        for number, tangent in enumerate(tangents):
            if tangent is not None and not isinstance(tangent, TensorBase):
                raise RuntimeError(
                    f"expected Variable or None (got {type_name(tangent)}) for grad output "
                    f"{number}."
                )
        if len(tangents) != len(outputs):
            raise RuntimeError(
                "Function's jvp returned an invalid number of forward gradients (expected "
                f"{len(outputs)} but got {len(tangents)})"
            )
        for number, tangent in enumerate(tangents):
            _give(forward, state, args, number, given[number], outputs[number], tangent)
    finally:
        state.kept = kept


def _inputs_of_jvp(
    ctx: FunctionNode, args: tuple[Any, ...], tangents: list[TensorBase | None]
) -> list[Any]:
    found: list[Any] = []
    for position, value in enumerate(args):
        tangent: Any = tangents[position]
        if tangent is None and isinstance(value, TensorBase) and ctx._materialize:
            tangent = operators["zeros_like"](value)
        found.append(tangent)
    return found


def _give(
    forward: ForwardPass,
    state: LocalState,
    args: tuple[Any, ...],
    number: int,
    given: Any,
    output: Any,
    tangent: Any,
) -> None:
    """One output's tangent."""
    if not isinstance(output, TensorBase):
        return
    if id(given) in forward.constant or output.dtype.category < FLOATING:
        if tangent is not None:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {number}, but  the corresponding "
                "forward output is not a differentiable Tensor.You should return None at that "
                "position instead."
            )
        return
    modified = id(given) in forward.dirty
    position = _position(given, args)
    own = None if position < 0 else forward.tangents[position]
    if modified and own is not None:
        if tangent is not own or version_of(own) == forward.versions[position]:
            raise RuntimeError(NOT_IN_PLACE)
        return
    if tangent is None or tangent.dtype.category < FLOATING:
        raise RuntimeError(
            "Expected both tensor and its forward grad to be floating point or complex: the jvp "
            f"returned {'None' if tangent is None else tangent.dtype} at position {number}"
        )
    if not modified and (position >= 0 or _is_view_of_any(output, args)):
        _check_view(forward, tangent)
    check_sizes(output, tangent)
    give_tangent(state, output, tangent, forward.level, modified)


def _check_view(forward: ForwardPass, tangent: TensorBase) -> None:
    """Whether the tangent of a view is a view of a tangent."""
    sources: list[Any] = [value for value in forward.tangents if value is not None]
    if _is_view_of_any(tangent, tuple(sources)):
        return
    is_view = tangent._view_info is not None
    raise RuntimeError(VIEW_OF_SOMETHING_ELSE if is_view else NOT_A_VIEW)


def _position(wanted: object, args: tuple[Any, ...]) -> int:
    for position, value in enumerate(args):
        if value is wanted:
            return position
    return -1


def _is_view_of_any(tensor: TensorBase, others: tuple[Any, ...]) -> bool:
    """Whether a tensor is a view of the memory of one of the others."""
    view = tensor._view_info
    if view is None:
        return False
    for other in others:
        if isinstance(other, TensorBase) and other is not tensor:
            above = other._view_info
            if view.base is (other if above is None else above.base):
                return True
    return False
