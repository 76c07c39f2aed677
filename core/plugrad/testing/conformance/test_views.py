"""Views: writes to a view are seen in its base and the other way round, and gradients follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plugrad
from plugrad.testing.cases import resolve
from plugrad.testing.conformance.kit.compare import assert_matches, on_host
from plugrad.testing.conformance.kit.matrix import each
from plugrad.testing.conformance.kit.subject import DeviceArguments, Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import Selection, Trial, tensors_of


def views(subject: Subject, selection: Selection) -> Iterator[Trial]:
    for trial in selection.trials_on(subject):
        if trial.case.view and trial.tensors():
            yield trial


def base_and_views(trial: Trial, made: DeviceArguments) -> tuple[Any, list[Any]]:
    with plugrad.no_grad():
        result, (args, _) = trial.run(made)
    return args[0].detach(), tensors_of(result)


def write(trial: Trial, made: DeviceArguments, *, to_view: bool) -> list[Any]:
    """All tensors after a write to the first view or to the base, or the error's type."""
    base, found = base_and_views(trial, made)
    with plugrad.no_grad():
        try:
            (found[0] if to_view else base).mul_(3)
        except NotImplementedError:
            raise
        except RuntimeError as error:
            return [type(error).__name__, base, *found]
    return [base._version, base, *found]


@each("trial", views)
def test_write_to_view(subject: Subject, trial: Trial) -> None:
    _compare_writes(subject, trial, to_view=True)


@each("trial", views)
def test_write_to_base(subject: Subject, trial: Trial) -> None:
    _compare_writes(subject, trial, to_view=False)


def _compare_writes(subject: Subject, trial: Trial, *, to_view: bool) -> None:
    with by_own_kernels():
        expected = write(trial, trial.expected_arguments(subject), to_view=to_view)
    actual = write(trial, trial.arguments(subject), to_view=to_view)
    if not subject.backend.mutable and expected[0] == "RuntimeError":
        return  # elements that share memory on the CPU need not here
    assert_matches(subject, actual, expected, trial.case)


@each("trial", views)
def test_gradient_through_a_written_view(subject: Subject, trial: Trial) -> None:
    if not trial.case.gradient or not trial.has_leaf:
        return

    def gradients(made: DeviceArguments) -> list[Any]:
        args = made.make(tuple(trial.sample.args))
        kwargs = made.make(dict(trial.sample.kwargs))
        base = args[0] * 1
        try:
            view = tensors_of(resolve(trial.case.op)(base, *args[1:], **kwargs))[0]
            view.mul_(3)
        except NotImplementedError:
            raise
        except RuntimeError as error:
            return [type(error).__name__]
        return [*plugrad.autograd.grad((base * base).sum(), [args[0]]), base.detach()]

    with by_own_kernels():
        expected = gradients(trial.expected_arguments(subject, overlapping=False))
    actual = gradients(trial.arguments(subject, overlapping=False))
    if not subject.backend.mutable and expected[0] == "RuntimeError":
        return
    assert_matches(subject, actual, expected, trial.case)


def test_slices_are_written_to(subject: Subject) -> None:
    subject.needs("slice.Tensor", "select.int", "copy_")
    x = subject.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    x[0, 1:] = subject.tensor([7.0, 8.0])
    x[1] = 0
    assert on_host(x).tolist() == [[1, 7, 8], [0, 0, 0]]


def test_versions_are_shared(subject: Subject) -> None:
    subject.needs("view", "add_.Scalar")
    x = subject.tensor([[1.0, 2.0], [3.0, 4.0]])
    flat = x.view(4)
    assert flat._version == x._version
    flat.add_(1)
    assert flat._version == x._version == 1
    assert on_host(x).tolist() == [[2.0, 3.0], [4.0, 5.0]]
