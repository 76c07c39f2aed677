"""In place: in-place methods compute what functions do, in the tensor itself, and count the
write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.testing.conformance.kit.compare import TOLERANCE, assert_matches, on_host
from plugrad.testing.conformance.kit.matrix import Item, each
from plugrad.testing.conformance.kit.subject import Subject, by_own_kernels
from plugrad.testing.conformance.kit.trials import Selection, Trial
from plugrad.testing.conformance.kit.variations import (
    in_place_variants,
    into,
    out_variants,
    written,
)


def methods(subject: Subject, selection: Selection) -> Iterator[Item]:
    for trial, name in in_place_variants(subject, selection):
        label = f"{name}-{trial.label.partition('-')[2]}"
        yield Item(label, (trial, name), trial.operator, trial.level)


def functions(subject: Subject, selection: Selection) -> Iterator[Trial]:
    return out_variants(subject, selection)


def slack_of(kwargs: dict[str, Any], written_to: Any) -> float:
    """The additional tolerance if `dtype=` has less precision than the tensor written to."""
    computed = kwargs.get("dtype")
    if not isinstance(computed, plugrad.dtype):
        return 1.0
    ours, theirs = (TOLERANCE.get(dtype.name, (0.0, 0.0))[0] for dtype in (computed, written_to))
    return max(ours / theirs, 1.0) if theirs else 1.0


@each("method", methods)
def test_method_in_place(subject: Subject, method: tuple[Trial, str]) -> None:
    trial, name = method
    with plugrad.no_grad():
        with by_own_kernels():
            made = trial.expected_arguments(subject, overlapping=False)
            wanted, _, untouched = written(trial, name, made)
        made = trial.arguments(subject, overlapping=False)
        receiver, result, others = written(trial, name, made)
    assert result is receiver, f"{name} returns another tensor than the one it writes to"
    assert receiver._version == wanted._version, f"{name}: writes counted"
    assert_matches(subject, receiver, wanted, trial.case, slack=slack_of(others[1], receiver.dtype))
    for ours, theirs in zip(others[0], untouched[0], strict=True):
        if hasattr(theirs, "array"):
            assert_matches(subject, ours, theirs, where="argument afterwards: ")


@each("trial", functions)
def test_out(subject: Subject, trial: Trial) -> None:
    with plugrad.no_grad():
        with by_own_kernels():
            wanted, _, _ = into(trial, trial.expected_arguments(subject))
        target, result, _ = into(trial, trial.arguments(subject))
    assert result is target, "the result is another tensor than out"
    assert_matches(subject, target, wanted, trial.case)


def test_gradient_through_writes(subject: Subject) -> None:
    subject.needs("mul_.Tensor", "add_.Scalar", "sum")

    def gradients(device: Any) -> list[Any]:
        x = plugrad.tensor([1.0, -2.0, 3.0]).to(device).requires_grad_()
        y = x * 2
        y.mul_(x)
        y += 1
        y.sum().backward()
        return [y.detach(), x.grad]

    with by_own_kernels():
        expected = gradients("cpu")
    assert_matches(subject, gradients(subject.device), expected)


def test_a_write_reaches_every_name_of_the_tensor(subject: Subject) -> None:
    subject.needs("add_.Scalar")
    x = subject.tensor([1.0, 2.0])
    same = x.detach()
    x.add_(1)
    assert on_host(same).tolist() == [2.0, 3.0]
    assert same._version == x._version == 1


def test_other_tensors_stay(subject: Subject) -> None:
    subject.needs("add_.Scalar", "clone")
    x = subject.tensor([1.0, 2.0])
    copy, product = x.clone(), x * 1
    x.add_(1)
    assert on_host(copy).tolist() == on_host(product).tolist() == [1.0, 2.0]


def test_a_saved_tensor_that_was_written_to_is_noticed(subject: Subject) -> None:
    subject.needs("add_.Scalar", "sum", "mul.Tensor")
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        z.sum().backward()
