"""Random numbers on JAX: what they are distributed like, and that a seed gives them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad

COUNT = 4000


@pytest.fixture(autouse=True)
def _seed() -> None:
    plugrad.manual_seed(0)


def on_jax(values: Any) -> Any:
    return plugrad.tensor(values, device="jax")


DRAWS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    # what is drawn into a tensor, its mean and its standard deviation
    "uniform_": (lambda x: x.uniform_(1.0, 3.0), 2.0, 2 / 12**0.5),
    "normal_": (lambda x: x.normal_(1.0, 2.0), 1.0, 2.0),
    "exponential_": (lambda x: x.exponential_(2.0), 0.5, 0.5),
    "bernoulli_": (lambda x: x.bernoulli_(0.25), 0.25, 0.1875**0.5),
    "random_": (lambda x: x.random_(0, 10), 4.5, 8.25**0.5),
    "rand": (lambda x: plugrad.rand(COUNT, device="jax"), 0.5, 1 / 12**0.5),
    "randn": (lambda x: plugrad.randn(COUNT, device="jax"), 0.0, 1.0),
    "randint": (lambda x: plugrad.randint(-2, 3, (COUNT,), device="jax"), 0.0, 2**0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_mean_and_deviation(name: str) -> None:
    draw, mean, deviation = DRAWS[name]
    found = draw(plugrad.zeros(COUNT, device="jax")).double().cpu().numpy()
    assert abs(found.mean() - mean) < 5 * deviation / COUNT**0.5
    assert abs(found.std() - deviation) < 0.1 * deviation


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_and_then_others(name: str) -> None:
    draw = DRAWS[name][0]
    empty = plugrad.zeros(COUNT, device="jax")
    plugrad.manual_seed(3)
    first, second = draw(empty).tolist(), draw(empty).tolist()
    plugrad.manual_seed(3)
    assert draw(empty).tolist() == first
    assert first != second


def test_drawing_into_a_view_writes_to_the_base() -> None:
    x = plugrad.zeros(6, device="jax")
    x[2:4].uniform_(1.0, 2.0)
    assert [number > 0 for number in x.tolist()] == [False, False, True, True, False, False]


def test_integers_of_the_whole_range() -> None:
    found = plugrad.zeros(COUNT, dtype=plugrad.int64, device="jax").random_(-(2**63), None)
    numbers = found.cpu().numpy()
    assert numbers.min() < -(2**62)
    assert numbers.max() > 2**62


def test_a_permutation_has_each_number_once() -> None:
    found = plugrad.randperm(50, device="jax")
    assert sorted(found.tolist()) == list(range(50)) != found.tolist()


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_draws_in_proportion(replacement: bool) -> None:
    weights = on_jax([[1.0, 0.0, 3.0]]).expand(COUNT, 3)
    drawn = plugrad.multinomial(weights, 2, replacement).cpu().numpy()
    assert not (drawn == 1).any()
    assert abs((drawn[:, 0] == 2).mean() - 0.75) < 0.04
    if not replacement:
        assert (drawn[:, 0] != drawn[:, 1]).all()


def test_dropout_scales_what_it_keeps() -> None:
    x = plugrad.ones(COUNT, device="jax", requires_grad=True)
    kept = plugrad.nn.functional.dropout(x, 0.2)
    kept.sum().backward()
    assert set(np.unique(kept.detach().cpu().numpy())) == {np.float32(0), np.float32(1.25)}
    assert x.grad is not None
    assert x.grad.tolist() == kept.tolist()
    assert abs(float(kept.detach().mean()) - 1) < 0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: plugrad.bernoulli(x), "p_in"),
        (lambda x: plugrad.multinomial(x, 1), "element < 0"),
        (lambda x: plugrad.multinomial(x * 0, 1), "sum of probabilities"),
    ],
)
def test_what_is_no_probability_is_told_when_the_program_waits(
    call: Callable[[Any], Any], words: str
) -> None:
    with pytest.raises(RuntimeError, match=words):
        call(on_jax([-0.5, 2.0])).tolist()
