"""Loss functions: the shared suite, and what it cannot express."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.composite import loss as decompositions
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestLoss(OpSuite):
    cases = family_cases("loss")


def random(*shape: int, seed: int = 0) -> Any:
    return plugrad.from_numpy(np.random.default_rng(seed).uniform(0.1, 0.9, shape))


@pytest.mark.parametrize(
    "target", [plugrad.tensor([], dtype=plugrad.int64), plugrad.tensor([-100, -100])]
)
def test_mean_over_no_target_is_nan(target: Any) -> None:
    logits = plugrad.zeros(target.shape[0], 3)
    assert math.isnan(plugrad.cross_entropy_loss(logits, target).item())


def test_cross_entropy_of_indices_records_two_nodes() -> None:
    x = plugrad.zeros(2, 3, requires_grad=True)
    node = plugrad.cross_entropy_loss(x, plugrad.tensor([0, 2])).grad_fn
    assert node.name() == "NllLossBackward0"
    assert node.next_functions[0][0].name() == "LogSoftmaxBackward0"


def test_smooth_l1_has_full_curvature_where_prediction_and_target_meet() -> None:
    x = plugrad.zeros(1, requires_grad=True)
    value = plugrad.smooth_l1_loss(x, plugrad.zeros(1), beta=0.5)
    (grad,) = plugrad.autograd.grad(value, x, create_graph=True)
    (curvature,) = plugrad.autograd.grad(grad.sum(), x)
    assert curvature.item() == 2


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_decompositions_agree_with_the_kernels(reduction: str) -> None:
    x, target, weight = random(3, 2), random(3, 2, seed=1), random(3, 2, seed=2)
    pairs = [
        (
            plugrad.mse_loss(x, target, reduction),
            decompositions.mse_loss_by_square(x, target, reduction),
        ),
        (
            plugrad.binary_cross_entropy_with_logits(x, target, weight, weight, reduction),
            decompositions.bce_with_logits_by_softplus(x, target, weight, weight, reduction),
        ),
    ]
    grad = pairs[0][0]
    pairs.append(
        (
            plugrad.mse_loss_backward(grad, x, target, reduction),
            decompositions.mse_loss_backward_by_product(grad, x, target, reduction),
        )
    )
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours.numpy(), theirs.numpy())
