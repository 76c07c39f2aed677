"""Initialisers: bounds, moments and errors (closed forms)."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.nn import init


def moments(tensor: Any) -> tuple[float, float]:
    return float(tensor.mean().item()), float(tensor.std().item())


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda t: init.uniform_(t, -3.0, 3.0), 3 / math.sqrt(3)),
        (lambda t: init.normal_(t, 0.0, 2.0), 2.0),
        (lambda t: init.xavier_uniform_(t, gain=2.0), 2 * math.sqrt(2 / 500)),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / 500)),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 200)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out"), math.sqrt(2 / 300)),
        (lambda t: init.kaiming_uniform_(t, a=math.sqrt(5)), math.sqrt(2 / 6 / 200)),
    ],
)
def test_moments(fill: Any, std: float) -> None:
    tensor = plugrad.empty(300, 200)
    assert fill(tensor) is tensor
    mean, actual = moments(tensor)
    assert abs(mean) < 0.02 * std
    assert actual == pytest.approx(std, rel=0.02)


def test_convolution_weights_count_their_receptive_field() -> None:
    weight = init.kaiming_uniform_(plugrad.empty(64, 32, 3, 3), nonlinearity="relu")
    assert moments(weight)[1] == pytest.approx(math.sqrt(2 / (32 * 9)), rel=0.02)


def test_trunc_normal_stays_inside() -> None:
    tensor = init.trunc_normal_(plugrad.empty(200, 200), std=1.0, a=-1.0, b=1.0)
    assert float(tensor.abs().max().item()) <= 1.0
    assert moments(tensor)[1] == pytest.approx(0.5396, rel=0.02)


def test_constants() -> None:
    assert init.ones_(plugrad.empty(2)).tolist() == [1.0, 1.0]
    assert init.zeros_(plugrad.empty(2)).tolist() == [0.0, 0.0]
    assert init.constant_(plugrad.empty(2), 3.5).tolist() == [3.5, 3.5]
    assert init.eye_(plugrad.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_initialisers_do_not_record_a_graph() -> None:
    tensor = plugrad.empty(3, 3, requires_grad=True)
    init.kaiming_uniform_(tensor)
    assert tensor.is_leaf
    assert tensor.requires_grad


def test_generator_makes_draws_repeatable() -> None:
    drawn = []
    for _ in range(2):
        generator = plugrad.Generator().manual_seed(5)
        drawn.append(init.uniform_(plugrad.empty(3), generator=generator).tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", ["linear", "conv2d", "sigmoid", "tanh", "relu", "selu"])
def test_gains_are_torchs(torch: Any, name: str) -> None:
    assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))


def test_leaky_relu_gain_depends_on_the_slope(torch: Any) -> None:
    for slope in (None, 0, 0.3):
        assert init.calculate_gain("leaky_relu", slope) == pytest.approx(
            torch.nn.init.calculate_gain("leaky_relu", slope)
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: init.calculate_gain("x"), "Unsupported nonlinearity x"),
        (lambda: init.kaiming_uniform_(plugrad.ones(3)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(plugrad.ones(3, 2), mode="x"), "Mode x not supported"),
        (lambda: init.eye_(plugrad.ones(3)), "Only tensors with 2 dimensions"),
    ],
)
def test_wrong_use_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_empty_tensors_warn() -> None:
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        init.kaiming_uniform_(plugrad.empty(0, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        init.kaiming_uniform_(plugrad.empty(1, 3))


def test_a_normal_distribution_that_misses_its_interval_ends() -> None:
    drawn = init.trunc_normal_(plugrad.ones(3), 0.0, 1e30, a=-1.0, b=1.0)
    assert bool((drawn.abs() <= 1).all())


def test_a_truncated_normal_takes_numpys_numbers_beside_large_ones() -> None:
    one: Any = np.float32(1)
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        drawn = init.trunc_normal_(plugrad.ones(3), 1e300, one)
    assert bool((drawn.abs() <= 2).all())
    not_a_tensor: Any = 3
    with pytest.raises(TypeError, match=r"argument 'tensor' .* must be Tensor, not int"):
        init.trunc_normal_(not_a_tensor, 1e300, one)
