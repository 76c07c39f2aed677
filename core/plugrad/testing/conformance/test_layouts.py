"""Layouts: broadcast, empty and 0-dim tensors; transposed, sliced and expanded ones."""

from __future__ import annotations

from typing import Any

from plugrad.testing.conformance.kit.compare import assert_matches
from plugrad.testing.conformance.kit.derivatives import first
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import Trial
from plugrad.testing.conformance.kit.variations import has_gradient, variations


@each("trial", variations)
def test_variation(subject: Subject, trial: Trial) -> None:
    with by_own_kernels():
        expected, (wanted_args, _) = trial.run(trial.expected_arguments(subject))
    actual, (args, _) = trial.run(trial.arguments(subject))
    # Which of several elements a place in memory keeps is not defined.
    if not any(expected is given and _overlaps(given) for given in wanted_args):
        assert_matches(subject, actual, expected, trial.case)
    for ours, theirs in zip(args, wanted_args, strict=True):
        if hasattr(theirs, "array") and not _overlaps(theirs):
            assert_matches(subject, ours, theirs, where="argument afterwards: ")
    if has_gradient(trial):
        found = first(trial, trial.arguments(subject))
        with by_own_kernels():
            wanted = first(trial, trial.expected_arguments(subject))
        assert_matches(subject, found, wanted, trial.case, where="gradient: ", slack=5)


def _overlaps(tensor: Any) -> bool:
    """Whether a tensor on the CPU has several elements at one place in memory."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return any(step == 0 and size > 1 for size, step in steps)
