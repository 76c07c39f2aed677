"""Applies a write to a view to the tensor that it is a view of, on immutable arrays.

A view is described by the operators that lead to it, its steps. A write goes through them
backwards: each step puts the new elements into its own input, with one operator. Of `x[1:].t()`

    steps       slice(x, 0, 1)          t
    backwards   slice_scatter(x, ., 0, 1)    t
"""

from __future__ import annotations

from typing import Any, Final

from plugrad.dispatch.operator import Operator, find_operator
from plugrad.dtype import int64
from plugrad.tensor.base import TensorBase, numel_of, sizes_of
from plugrad.tensor.views import AS_STRIDED, replay_view

# Operator, its arguments after the first, and which of several results (-1: there is one).
Step = tuple[Operator, tuple[Any, ...], int]

# They give all elements, in the same order.
SAME_ELEMENTS: Final = frozenset(
    ("view", "squeeze", "unsqueeze", "detach", "alias", "_conj", "_neg_view")
)
_OWN_INVERSE: Final = frozenset(("transpose", "t", "_conj", "_neg_view"))
# The operator that puts a part back; it has the same arguments.
_SCATTER: Final = {
    "slice": "slice_scatter",
    "select": "select_scatter",
    "diagonal": "diagonal_scatter",
}


def call(name: str, *args: Any) -> TensorBase:
    """Call one of plugrad's own operators with all its arguments."""
    op = find_operator("plugrad::" + name)
    assert op is not None
    result: TensorBase = op(*args)
    return result


def single_step(step: Step) -> Step:
    """The same view by an operator that returns nothing else: of `split`, one slice."""
    op, arguments, position = step
    if position < 0 or op.namespace != "plugrad":
        return step
    name = op.name
    if name == "unbind":
        return named_step("select.int", (arguments[0], position))
    if name == "split_with_sizes":
        lengths: tuple[int, ...] = tuple(arguments[0])
        start = sum(lengths[:position])
        return named_step("slice.Tensor", (arguments[1], start, start + lengths[position], 1))
    if name == "split":
        size, dim = arguments
        if size > 0:
            return named_step("slice.Tensor", (dim, position * size, (position + 1) * size, 1))
    return step


def named_step(name: str, arguments: tuple[Any, ...]) -> Step:
    """A step of one of plugrad's operators that return one tensor."""
    op = find_operator("plugrad::" + name)
    assert op is not None
    return op, arguments, -1


def put_back(root: TensorBase, steps: list[Step], value: TensorBase) -> TensorBase:
    """The root with other elements where `steps` lead to."""
    sources = [root]
    for position in range(len(steps) - 1):
        sources.append(replay_view([steps[position]], sources[-1], 0))
    for position in range(len(steps) - 1, -1, -1):
        value = _invert(steps[position], sources[position], value)
    return value


def _invert(step: Step, source: TensorBase, value: TensorBase) -> TensorBase:
    """`source` with `value` in place of the elements that one step takes from it."""
    op, arguments, _ = step
    name = op.name if op.namespace == "plugrad" else ""
    if name in _OWN_INVERSE:
        result: TensorBase = op(value, *arguments)
        return result
    if name in SAME_ELEMENTS:
        return call("reshape", value, sizes_of(source))
    if name in _SCATTER:
        return call(_SCATTER[name], source, value, *arguments)
    if name == "permute":
        dims = [int(dim) % len(arguments[0]) for dim in arguments[0]]
        return call("permute", value, tuple([dims.index(i) for i in range(len(dims))]))
    if name == AS_STRIDED:
        return call("_as_strided_scatter", source, value, *arguments[:3])
    if name == "real":
        if not source.dtype.is_complex:
            return value
        return call("complex", value, call("imag", source))
    if name == "imag":
        return call("complex", call("real", source), value)
    if name == "view_as_real":
        return call("view_as_complex", value)
    if name == "view_as_complex":
        return call("view_as_real", call("resolve_conj", value))
    if name == "_view_dtype":
        return call("_view_dtype", value, source.dtype)
    return _by_numbers(step, source, value)


def _by_numbers(step: Step, source: TensorBase, value: TensorBase) -> TensorBase:
    """For views by other packages' operators: applied to the elements' numbers, they show which
    elements they take."""
    count = numel_of(source)
    arange = find_operator("plugrad::arange")
    assert arange is not None
    numbers: TensorBase = arange(0, count, 1, dtype=int64, device=source.device)
    places = replay_view([step], call("reshape", numbers, sizes_of(source)), 0)
    flat = call(
        "scatter.src",
        call("reshape", source, (count,)),
        0,
        call("reshape", places, (numel_of(value),)),
        call("reshape", value, (numel_of(value),)),
    )
    return call("reshape", flat, sizes_of(source))
