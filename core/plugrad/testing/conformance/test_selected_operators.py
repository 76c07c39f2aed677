"""Selected operators: what `--plugrad-op` adds, finite differences and `opcheck`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plugrad
from plugrad.dispatch.operator import find_operator
from plugrad.testing import gradcheck, gradgradcheck
from plugrad.testing.conformance.derivatives import differentiable, of_leaves
from plugrad.testing.conformance.matrix import each
from plugrad.testing.conformance.subject import Subject
from plugrad.testing.conformance.trials import Selection, Trial

# Finite differences element by element up to here, along random directions above.
SLOW_MODE_LIMIT = 30


def selected(subject: Subject, selection: Selection) -> Iterator[Trial]:
    """The trials, in a run about single operators."""
    if selection.names and hasattr(plugrad.library, "opcheck"):
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


@each("trial", selected)
def test_opcheck(subject: Subject, trial: Trial) -> None:
    """What the schema says about writes and aliases is true, and so on."""
    op = find_operator(trial.operator)
    assert op is not None, f"{trial.case.op} calls no operator"
    made = trial.arguments(subject, overlapping=False)
    args: Any = made.make(tuple(trial.sample.args))
    kwargs = made.make(dict(trial.sample.kwargs))
    library: Any = plugrad.library
    library.opcheck(op, args, kwargs)
