"""Compares a graph with the function it was captured from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad.dispatch.scope import Undone
from plugrad.plugins.tracing import listening
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.interop.arrays import host_array
from plugrad.transforms.capture.node import meta_of
from plugrad.transforms.capture.trees import flatten, paths
from plugrad.transforms.capture.undo import Undo, copied, silently

if TYPE_CHECKING:
    from plugrad.transforms.capture.graph import Graph


RTOL = 1e-5
ATOL = 1e-8


def check(graph: Graph, args: Any, kwargs: Any) -> None:
    """See `Graph.check`."""
    if graph.function is None:
        raise RuntimeError("check(): the graph was not captured from a function")
    leaves = graph.guards.check(args, kwargs)
    outside = {each.name: leaves[each.position] for each in graph.inputs}
    constants = graph.constants.items()
    outside |= {name: value for name, value in constants if isinstance(value, TensorBase)}
    expected = _outcome(graph.function, args, kwargs, outside)
    found = _outcome(graph, args, kwargs, outside)
    for name in dict.fromkeys([*expected, *found]):
        if name not in expected or name not in found:
            where = "function" if name in expected else "graph"
            raise AssertionError(f"{name}: only the {where} has it")
        _compare(name, found[name], expected[name], not graph.makes_leaves)


def _outcome(
    function: Callable[..., Any], args: Any, kwargs: Any, outside: dict[str, Any]
) -> dict[str, Any]:
    """What a run returns and the tensors after it, by name; then undo the run."""
    undo = Undo()
    for tensor in outside.values():
        undo.meet(tensor)
    with Undone(undo.restore):
        with listening(undo):
            result = function(*args, **kwargs)
        leaves, tree = flatten(result)
        found = dict(zip(paths(tree, "the result"), [_seen(leaf) for leaf in leaves], strict=True))
        for name, tensor in outside.items():
            found[f"{name} after the run"] = _seen(tensor)
            grad = None if tensor._autograd_meta is None else tensor._autograd_meta.grad
            found[f"{name}.grad after the run"] = _seen(grad)
        return found


def _seen(value: Any) -> Any:
    """A value that later runs do not change, and whether it requires grad."""
    if isinstance(value, TensorBase):
        return copied(value), needs_grad(value)
    return value


def _compare(name: str, found: Any, expected: Any, flags: bool) -> None:
    if not isinstance(found, tuple) or not isinstance(expected, tuple):
        if type(found) is not type(expected) or found != expected:
            raise AssertionError(f"{name}: expected {_shown(expected)}, found {_shown(found)}")
        return
    (tensor, recorded), (wanted, was_recorded) = found, expected
    if meta_of(tensor) != meta_of(wanted):
        raise AssertionError(f"{name}: expected {meta_of(wanted)}, found {meta_of(tensor)}")
    if flags and recorded != was_recorded:
        raise AssertionError(f"{name}: expected requires_grad={was_recorded}, found {recorded}")
    if tensor.device.type == "meta":
        return
    with silently():
        a, b = _wide(host_array(tensor)), _wide(host_array(wanted))
    if not np.allclose(a, b, rtol=RTOL, atol=ATOL, equal_nan=True):
        with np.errstate(all="ignore"):
            worst = np.nanmax(np.abs(a - b))
        raise AssertionError(f"{name}: elements differ by up to {worst}")


def _wide(array: Any) -> Any:
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    return np.asarray(array).astype(kind)


def _shown(value: Any) -> str:
    return str(meta_of(value[0])) if isinstance(value, tuple) else repr(value)
