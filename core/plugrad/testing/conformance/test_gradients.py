"""Gradients: every differentiable operator gives the CPU's gradients."""

from __future__ import annotations

from collections.abc import Iterator

from plugrad.testing.conformance.kit.compare import assert_matches
from plugrad.testing.conformance.kit.derivatives import differentiable, first
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import Selection, Trial


def with_gradient(subject: Subject, selection: Selection) -> Iterator[Trial]:
    return differentiable(subject, selection, twice=False)


@each("trial", with_gradient)
def test_gradient(subject: Subject, trial: Trial) -> None:
    with by_own_kernels():
        expected = first(trial, trial.expected_arguments(subject))
    actual = first(trial, trial.arguments(subject))
    assert_matches(subject, actual, expected, trial.case, where="gradient: ", slack=5)
