"""Checks that an operator's calls can be recorded and replayed on other values."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.dispatch.keys import COMPOSITE_IMPLICIT_AUTOGRAD
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.tensor.base import TensorBase
from plugrad.testing.opcheck.inputs import (
    Call,
    OpCheckError,
    Skipped,
    detached,
    mapped,
    outputs_of,
)


class _Recorder(Trace):
    """Writes the calls down that an operator consists of; not what kernels call in turn."""

    def __init__(self, outer: Trace | None) -> None:
        super().__init__(outer)
        self.calls: list[tuple[Operator, tuple[Any, ...], Any]] = []
        self._inside = False

    def dispatch(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        composite = op.kernel_for(COMPOSITE_IMPLICIT_AUTOGRAD)
        is_made_of_others = composite is not None and op.lookup(keyset) is composite
        if kind != "call" or self._inside or is_made_of_others:
            return super().dispatch(kind, op, keyset, args)
        self._inside = True
        try:
            out = super().dispatch(kind, op, keyset, args)
        finally:
            self._inside = False
        self.calls.append((op, args, out))
        return out


def check_capture(call: Call) -> dict[str, str]:
    """OpCheckError if the calls that were recorded do something else for other values."""
    if call.draws_random_numbers:
        raise Skipped("it draws random numbers")
    with plugrad.no_grad():
        inputs = call.copies()
        calls, out = _record(call, inputs)
        other = call.copies(_permuted)
        try:
            expected = call.run(other)
        except Exception:
            # Other values are none that the operator takes: these must do.
            other = call.copies()
            expected = call.run(other)
        replayed_inputs = call.copies(_permuted) if _differ(other, inputs) else call.copies()
        replayed = _replay(calls, inputs, replayed_inputs, out)
    try:
        call.compare(detached(replayed), detached(expected))
        call.compare(_tensors(replayed_inputs), _tensors(other))
    except AssertionError as error:
        recorded = ", ".join(op.qualified_name for op, _, _ in calls) or "none"
        raise OpCheckError(
            f"the calls that were recorded of {call.op.qualified_name} ({recorded}) give other "
            f"results than the operator for other values of the same shape: {error}\nA composite "
            "operator must compute with operators only: numbers that are taken out with item(), "
            "tolist() or numpy() keep their values. Make it a custom_op, or use where()."
        ) from error
    return {}


def _tensors(values: tuple[Any, ...]) -> list[Any]:
    return [leaf for leaf in outputs_of(detached(values)) if isinstance(leaf, plugrad.Tensor)]


def _differ(other: tuple[Any, ...], inputs: tuple[Any, ...]) -> bool:
    pairs = zip(outputs_of(other), outputs_of(inputs), strict=True)
    return any(
        isinstance(a, plugrad.Tensor) and not bool(plugrad.equal(a.detach(), b.detach()))
        for a, b in pairs
    )


def _permuted(tensor: Any) -> Any:
    """The same values at other places: they are still ones that the operator takes."""
    return tensor.reshape(-1).roll(1).reshape(tensor.shape) if tensor.numel() > 1 else tensor


def _record(call: Call, inputs: tuple[Any, ...]) -> tuple[list[Any], Any]:
    state = current_state()
    former = state.trace
    recorder = _Recorder(former)
    state.trace = recorder
    try:
        out = call.run(inputs)
    finally:
        state.trace = former
    return recorder.calls, out


def _replay(calls: list[Any], inputs: tuple[Any, ...], others: tuple[Any, ...], out: Any) -> Any:
    """Run the calls with `others` in place of `inputs`; returns the value in place of `out`."""
    known: dict[int, Any] = {}
    _match(known, inputs, others)

    def current(tensor: Any) -> Any:
        return known.get(id(tensor), tensor)

    for op, args, result in calls:
        found = op.call(tuple(mapped(current, value) for value in args))
        _match(known, result, found)
    return mapped(current, out)


def _match(known: dict[int, Any], recorded: Any, found: Any) -> None:
    for before, after in zip(outputs_of(recorded), outputs_of(found), strict=True):
        if isinstance(before, TensorBase):
            known[id(before)] = after
