"""Values: what an operator computes is what the CPU computes, in every dtype the backend has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from plugrad.testing.conformance.kit.compare import assert_matches
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import Selection, Trial, tensors_of

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError)


def on_backend(subject: Subject, selection: Selection) -> Iterable[Trial]:
    return selection.trials_on(subject)


def in_other_dtypes(subject: Subject, selection: Selection) -> Iterator[list[Trial]]:
    return selection.in_each_dtype(subject)


def compare(subject: Subject, trial: Trial) -> None:
    """Result and arguments afterwards are what they are on the CPU."""
    where = f"{trial.label}: "
    try:
        with by_own_kernels():
            expected, left = trial.run(trial.expected_arguments(subject))
    except ERRORS:
        # A backend may take dtypes that the CPU does not take, but it must not fail otherwise.
        with suppress(*ERRORS):
            trial.run(trial.arguments(subject))
            subject.synchronize()
        return
    if not {tensor.dtype.name for tensor in tensors_of(expected)} <= set(subject.dtypes):
        return  # a dtype that the backend does not have
    actual, used = trial.run(trial.arguments(subject))
    assert_matches(subject, actual, expected, trial.case, where=where)
    assert_matches(subject, _values(used), _values(left), where=f"{where}argument afterwards: ")


def _values(arguments: Any) -> list[Any]:
    """The tensors among arguments; others cannot have changed."""
    args, kwargs = arguments
    return [value for value in (*args, *kwargs.values()) if hasattr(value, "array")]


@each("trial", on_backend)
def test_value(subject: Subject, trial: Trial) -> None:
    compare(subject, trial)


@each("trials", in_other_dtypes)
def test_other_dtypes(subject: Subject, trials: list[Trial]) -> None:
    for trial in trials:
        compare(subject, trial)
