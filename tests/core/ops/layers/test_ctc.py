"""Connectionist temporal classification: closed forms, and the gradient behind `log_softmax`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing import gradcheck
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite

LOGITS = np.random.default_rng(0).normal(size=(4, 2, 3))
TARGETS = [[1, 2], [1, 1]]


class TestCtc(OpSuite):
    cases = family_cases("ctc")


def collapsed(path: tuple[int, ...], blank: int) -> list[int]:
    merged = [label for label, _ in itertools.groupby(path)]
    return [label for label in merged if label != blank]


@pytest.mark.parametrize("length", [0, 1, 2])
def test_loss_is_minus_the_logarithm_of_the_sum_over_all_paths(length: int) -> None:
    logs = plugrad.from_numpy(LOGITS).log_softmax(2)
    table = logs.exp().numpy()
    losses = plugrad.ctc_loss(logs, plugrad.tensor(TARGETS), [4, 3], [length] * 2, reduction=0)
    for row, steps in ((0, 4), (1, 3)):
        total = sum(
            np.prod([table[t, row, c] for t, c in enumerate(path)])
            for path in itertools.product(range(3), repeat=steps)
            if collapsed(path, 0) == TARGETS[row][:length]
        )
        assert losses[row].item() == pytest.approx(-np.log(total))


@pytest.mark.parametrize("targets", [TARGETS, [1, 2, 1, 1]])
def test_gradient_and_tangent_are_those_of_finite_differences(targets: Any) -> None:
    labels = plugrad.tensor(targets)

    def loss(logits: plugrad.Tensor) -> plugrad.Tensor:
        logs = logits.log_softmax(2)
        return plugrad.ctc_loss(logs, labels, [4, 3], [2, 2], reduction=0)

    logits = plugrad.from_numpy(LOGITS).requires_grad_()
    assert gradcheck(loss, (logits,), check_forward_ad=True)


def test_vmap_gives_what_a_loop_gives() -> None:
    logs = plugrad.from_numpy(np.stack([LOGITS, -LOGITS, 2 * LOGITS])).log_softmax(3)
    labels = plugrad.tensor([TARGETS, [[2, 1], [0, 1]], [[2, 2], [1, 2]]])

    def loss(logs: plugrad.Tensor, labels: plugrad.Tensor) -> plugrad.Tensor:
        return plugrad.ctc_loss(logs, labels, [4, 3], [2, 1])

    def slope(logs: plugrad.Tensor, labels: plugrad.Tensor) -> Any:
        return plugrad.func.grad(loss)(logs, labels)

    for function in (loss, slope):
        mapped = plugrad.vmap(function)(logs, labels)
        looped = plugrad.stack([function(x, y) for x, y in zip(logs, labels, strict=True)])
        assert plugrad.allclose(mapped, looped)


def test_second_derivative_is_an_error_that_names_the_operator() -> None:
    logs = plugrad.from_numpy(LOGITS).log_softmax(2).requires_grad_()
    loss = plugrad.ctc_loss(logs, plugrad.tensor(TARGETS), [4, 3], [2, 2])
    (slope,) = plugrad.autograd.grad(loss, logs, create_graph=True)
    with pytest.raises(NotImplementedError, match="_ctc_loss_backward"):
        slope.sum().backward()


def test_lengths_may_be_tensors_of_integers() -> None:
    logs = plugrad.from_numpy(LOGITS).log_softmax(2)
    labels = plugrad.tensor(TARGETS)
    numbers = plugrad._ctc_loss(logs, labels, [4, 3], [2, 1])[0]
    tensors = plugrad._ctc_loss(logs, labels, plugrad.tensor([4, 3]), plugrad.tensor([2, 1]))[0]
    assert plugrad.equal(numbers, tensors)
