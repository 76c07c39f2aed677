"""Dropouts and randomised units where they draw: what is kept, shared, scaled and written."""

from __future__ import annotations

import math

import pytest

import plugrad

ALPHA = 1.7580993408473766


@pytest.fixture(autouse=True)
def seeded() -> None:
    plugrad.manual_seed(0)


@pytest.mark.parametrize("name", ["feature_dropout", "feature_alpha_dropout"])
def test_a_channel_is_dropped_as_a_whole(name: str) -> None:
    y = getattr(plugrad, name)(plugrad.ones(8, 9, 4), 0.5, True)
    assert bool((y == y[:, :, :1]).all())
    assert 0.25 < (y[:, :, 0] > 0.9).double().mean().item() < 0.75


@pytest.mark.parametrize("name", ["dropout", "feature_dropout"])
def test_kept_elements_are_scaled(name: str) -> None:
    x = plugrad.ones(20, 30, requires_grad=True)
    y = getattr(plugrad, name)(x, 0.75, True)
    assert bool(((y == 0) | (y == 4)).all())
    y.sum().backward()
    assert plugrad.equal(x.grad, y)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = plugrad.randn(100, 100, dtype=plugrad.float64)
    y = plugrad.alpha_dropout(x, 0.3, True)
    assert abs(y.mean().item()) < 0.05
    assert abs(y.var().item() - 1) < 0.05
    scale = 1 / math.sqrt((ALPHA**2 * 0.3 + 1) * 0.7)
    dropped = (y - scale * (-ALPHA + 0.3 * ALPHA)).abs() < 1e-12
    assert 0.25 < dropped.double().mean().item() < 0.35


@pytest.mark.parametrize(
    "name", ["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"]
)
def test_in_place_forms_write_what_the_function_returns(name: str) -> None:
    x = plugrad.randn(5, 6, 2)
    plugrad.manual_seed(1)
    expected = getattr(plugrad, name)(x, 0.4, True)
    plugrad.manual_seed(1)
    found = getattr(plugrad, f"{name}_")(x, 0.4, True)
    assert found is x
    assert plugrad.allclose(x, expected)


@pytest.mark.parametrize("name", ["dropout_", "alpha_dropout"])
def test_what_is_kept_is_drawn_as_bernoulli_draws(name: str) -> None:
    x = plugrad.ones(6, 4, dtype=plugrad.float64).t()
    plugrad.manual_seed(1)
    kept = plugrad.empty_like(x).bernoulli_(0.5)
    plugrad.manual_seed(1)
    y = getattr(plugrad, name)(x, 0.5, True)
    assert plugrad.equal(y > 0, kept > 0)


def test_rrelu_draws_a_factor_for_each_negative_element() -> None:
    x = plugrad.tensor([-1.0] * 50 + [2.0], requires_grad=True)
    y = plugrad.rrelu(x, 0.25, 0.5, training=True)
    assert bool(((y[:50] <= -0.25) & (y[:50] >= -0.5)).all())
    y.sum().backward()
    assert x.grad is not None
    assert plugrad.allclose(x.grad[:50], -y[:50].detach())
    assert x.grad[50] == 1


def test_rrelu_draws_as_many_numbers_as_it_needs() -> None:
    x = plugrad.tensor([-1.0, 2.0, -1.0])
    y = plugrad.rrelu(x, 0.0, 1.0, training=True)
    after = plugrad.rand(1)
    plugrad.manual_seed(0)
    first, second = plugrad.rand(2, dtype=plugrad.float64).float().tolist()
    assert y.tolist() == [-first, 2.0, -second]
    assert plugrad.equal(plugrad.rand(1), after)


def test_rrelu_with_noise_says_which_factors_it_drew() -> None:
    x, factors = plugrad.tensor([-1.0, 3.0, -2.0]), plugrad.zeros(3)
    y = plugrad.rrelu_with_noise(x, factors, 0.1, 0.3, True)
    assert plugrad.allclose(y, x * factors)
    assert factors[1] == 1
    with pytest.raises(RuntimeError, match=r"Got self.shape = \[3\] noise.shape = \[2\]"):
        plugrad.rrelu_with_noise(x, plugrad.zeros(2))


def test_rrelu_in_place_takes_the_mean_of_the_bounds() -> None:
    x = plugrad.tensor([-2.0, 3.0])
    assert plugrad.rrelu_(x, 0.25, 0.75) is x
    assert x.tolist() == [-1.0, 3.0]
    plugrad.rrelu_with_noise_(x, plugrad.zeros(2), 0.25, 0.75)
    assert x.tolist() == [-0.5, 3.0]


def test_one_dimension_has_no_features() -> None:
    with pytest.raises(RuntimeError, match="requires at least 2 dimensions"):
        plugrad.feature_dropout(plugrad.ones(3), 0.5, True)
