"""Selected operators: what `--plugrad-op` adds, finite differences and `opcheck`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mypy_extensions import i64

import plugrad
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.testing import gradcheck, gradgradcheck
from plugrad.testing.conformance.kit.derivatives import differentiable, of_leaves
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection, Trial

# What the kit does not check otherwise: gradients and backends are compared for each trial.
DECLARATIONS = (
    "test_schema", "test_autograd_registration", "test_faketensor", "test_capture", "test_vmap",
)  # fmt: skip
# Finite differences element by element up to here, along random directions above.
SLOW_MODE_LIMIT = 30


def selected(subject: Subject, selection: Selection) -> Iterator[Trial]:
    """The trials, in a run about single operators."""
    if selection.names:
        yield from selection.trials_on(subject)


def with_gradient(subject: Subject, selection: Selection) -> Iterator[Trial]:
    return _in_double_precision(subject, selection, twice=False)


def with_second_gradient(subject: Subject, selection: Selection) -> Iterator[Trial]:
    return _in_double_precision(subject, selection, twice=True)


def _in_double_precision(subject: Subject, selection: Selection, *, twice: bool) -> Iterator[Trial]:
    if selection.names and subject.floating == "float64":
        for trial in differentiable(subject, selection, twice=twice):
            if trial.dtype in (None, "complex128"):
                yield trial


@each("trial", with_gradient)
def test_gradient_by_finite_differences(subject: Subject, trial: Trial) -> None:
    function, leaves = of_leaves(trial, trial.arguments(subject, overlapping=False))
    fast = sum(leaf.numel() for leaf in leaves) > SLOW_MODE_LIMIT
    assert gradcheck(function, leaves, fast_mode=fast)


@each("trial", with_second_gradient)
def test_second_gradient_by_finite_differences(subject: Subject, trial: Trial) -> None:
    function, leaves = of_leaves(trial, trial.arguments(subject, overlapping=False))
    fast = sum(leaf.numel() for leaf in leaves) > SLOW_MODE_LIMIT // 3
    assert gradgradcheck(function, leaves, fast_mode=fast)


class Listener(Trace):
    """Notes what an operator is called with, in schema order."""

    def __init__(self, name: str, outer: Trace | None) -> None:
        super().__init__(outer)
        self.name = name
        self.calls: list[tuple[object, ...]] = []

    def dispatch(self, kind: str, op: Operator, keyset: i64, args: tuple[object, ...]) -> Any:
        if kind == "call" and op.qualified_name == self.name:
            self.calls.append(args)
        return super().dispatch(kind, op, keyset, args)


@each("trial", selected)
def test_opcheck(subject: Subject, trial: Trial) -> None:
    """What is declared of the operator is true of it: see `plugrad.library.opcheck`."""
    op = find_operator(trial.operator)
    assert op is not None, f"{trial.case.op} calls no operator"
    state = current_state()
    listener = Listener(op.qualified_name, state.trace)
    state.trace = listener
    try:
        with plugrad.no_grad():
            trial.run(trial.arguments(subject, overlapping=False))
    finally:
        state.trace = listener.outer
    given = list(zip(op.schema.arguments, listener.calls[0], strict=True))
    args = tuple(value for argument, value in given if not argument.kwarg_only)
    kwargs = {argument.name: value for argument, value in given if argument.kwarg_only}
    plugrad.library.opcheck(op, args, kwargs, test_utils=DECLARATIONS)
