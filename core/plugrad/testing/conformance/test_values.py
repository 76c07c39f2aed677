"""Values: what an operator computes is what the CPU computes, in every dtype the backend has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from plugrad.errors import OperatorNotFoundError
from plugrad.testing.conformance.compare import assert_matches
from plugrad.testing.conformance.matrix import each
from plugrad.testing.conformance.subject import Subject
from plugrad.testing.conformance.trials import Selection, Trial

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError)


def on_backend(subject: Subject, selection: Selection) -> Iterable[Trial]:
    return selection.trials_on(subject)


def in_other_dtypes(subject: Subject, selection: Selection) -> Iterator[list[Trial]]:
    return selection.in_each_dtype(subject)


def compare(subject: Subject, trial: Trial) -> None:
    """Result and arguments afterwards are what they are on the CPU; so is an error's type."""
    where = f"{trial.label}: "
    raised: Exception | None = None
    try:
        expected, left = trial.run(trial.expected_arguments(subject))
    except ERRORS as error:
        raised = error
    if raised is not None:
        with pytest.raises(ERRORS) as ours:
            trial.run(trial.arguments(subject))
        lacking = isinstance(ours.value, OperatorNotFoundError)
        assert not lacking or isinstance(raised, OperatorNotFoundError), where
        return
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
