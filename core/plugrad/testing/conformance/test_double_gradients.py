"""Double gradients: gradients of gradients agree with the CPU's."""

from __future__ import annotations

from collections.abc import Iterator

from plugrad.testing.conformance.kit.compare import assert_matches
from plugrad.testing.conformance.kit.derivatives import differentiable, second
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import Selection, Trial


def with_second_gradient(subject: Subject, selection: Selection) -> Iterator[Trial]:
    return differentiable(subject, selection, twice=True)


@each("trial", with_second_gradient)
def test_double_gradient(subject: Subject, trial: Trial) -> None:
    with by_own_kernels():
        expected = second(trial, trial.expected_arguments(subject))
    actual = second(trial, trial.arguments(subject))
    assert_matches(subject, actual, expected, trial.case, where="second gradient: ", slack=20)
