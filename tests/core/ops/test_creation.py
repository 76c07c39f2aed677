"""Factory functions: the shared suite; random ones by moments, ranges and reproducibility."""

from __future__ import annotations

import math
from typing import Any

import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite

COUNT = 20_000


class TestCreation(OpSuite):
    cases = family_cases("creation")


@pytest.fixture(autouse=True)
def seeded() -> None:
    plugrad.manual_seed(1234)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: plugrad.empty(2, 3, **k),
        lambda **k: plugrad.zeros((2, 3), **k),
        lambda **k: plugrad.full((2, 3), 1.0, **k),
        lambda **k: plugrad.arange(3.0, **k),
        lambda **k: plugrad.eye(2, **k),
        lambda **k: plugrad.linspace(0, 1, 3, **k),
        lambda **k: plugrad.rand(2, **k),
        lambda **k: plugrad.randn(2, **k),
        lambda **k: plugrad.zeros_like(plugrad.ones(2), **k),
        lambda **k: plugrad.ones(2).new_full((3,), 2.0, **k),
    ],
)
def test_factories_take_dtype_device_and_requires_grad(make: Any) -> None:
    made = make(dtype=plugrad.float64, device="cpu", requires_grad=True)
    assert made.dtype is plugrad.float64
    assert made.is_leaf
    assert made.requires_grad
    assert made.device == plugrad.device("cpu")


def test_integers_cannot_require_grad() -> None:
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        plugrad.zeros(2, dtype=plugrad.int64, requires_grad=True)


def test_the_default_dtype_is_used() -> None:
    plugrad.set_default_dtype(plugrad.float64)
    try:
        assert plugrad.zeros(1).dtype is plugrad.float64
        assert plugrad.rand(1).dtype is plugrad.float64
        assert plugrad.arange(0.0, 1, 0.5).dtype is plugrad.float64
        assert plugrad.full((1,), 1j).dtype is plugrad.complex128
    finally:
        plugrad.set_default_dtype(plugrad.float32)


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (lambda: plugrad.rand(COUNT), 1 / 2, 1 / 12),
        (lambda: plugrad.randn(COUNT, dtype=plugrad.float64), 0, 1),
        (lambda: plugrad.rand_like(plugrad.empty(COUNT)), 1 / 2, 1 / 12),
        (lambda: plugrad.randn_like(plugrad.empty(COUNT)), 0, 1),
        (lambda: plugrad.randint(10, (COUNT,)).double(), 4.5, 99 / 12),
        (lambda: plugrad.randint(-5, 5, (COUNT,)).double(), -0.5, 99 / 12),
        (lambda: plugrad.empty(COUNT).uniform_(-1, 3), 1, 16 / 12),
        (lambda: plugrad.empty(COUNT).normal_(2, 3), 2, 9),
        (lambda: plugrad.empty(COUNT).exponential_(2), 1 / 2, 1 / 4),
        (lambda: plugrad.empty(COUNT).bernoulli_(0.3), 0.3, 0.21),
        (lambda: plugrad.empty(COUNT).bernoulli_(plugrad.tensor(0.3)), 0.3, 0.21),
        (lambda: plugrad.bernoulli(plugrad.full((COUNT,), 0.7)), 0.7, 0.21),
        (lambda: plugrad.empty(COUNT).random_(0, 10), 4.5, 99 / 12),
        (lambda: plugrad.normal(1.0, 2.0, (COUNT,)), 1, 4),
        (lambda: plugrad.normal(plugrad.ones(COUNT), 2.0), 1, 4),
        (lambda: plugrad.normal(1.0, plugrad.full((COUNT,), 2.0)), 1, 4),
        (lambda: plugrad.normal(plugrad.ones(COUNT), plugrad.tensor(2.0)), 1, 4),
    ],
)
def test_random_numbers_have_the_moments_of_their_distribution(
    draw: Any, mean: float, variance: float
) -> None:
    drawn = draw().double()
    spread = math.sqrt(variance / COUNT)
    assert abs(drawn.mean().item() - mean) < 5 * spread
    assert drawn.var().item() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("dtype", [plugrad.float16, plugrad.bfloat16, plugrad.float32])
def test_uniform_numbers_stay_below_one(dtype: plugrad.dtype) -> None:
    drawn = plugrad.rand(COUNT, dtype=dtype)
    assert drawn.dtype is dtype
    assert drawn.float().max().item() < 1
    assert drawn.float().min().item() >= 0


def test_complex_normal_numbers_have_variance_one() -> None:
    drawn = plugrad.randn(COUNT, dtype=plugrad.complex64)
    assert drawn.abs().square().mean().item() == pytest.approx(1, rel=0.05)


def test_a_permutation_has_every_number_once() -> None:
    drawn = plugrad.randperm(100)
    assert drawn.dtype is plugrad.int64
    assert sorted(drawn.tolist()) == list(range(100))
    assert drawn.tolist() != list(range(100))


def test_multinomial_follows_the_weights() -> None:
    weights = plugrad.tensor([[1.0, 0.0, 3.0], [0.0, 2.0, 2.0]])
    drawn = plugrad.multinomial(weights, COUNT, replacement=True)
    assert drawn.shape == (2, COUNT)
    share = (drawn[0] == 2).double().mean().item()
    assert share == pytest.approx(0.75, abs=0.02)
    assert (drawn[0] == 1).sum().item() == 0
    without = plugrad.multinomial(weights[0], 2)
    assert sorted(without.tolist()) == [0, 2]


def test_the_seed_decides_what_is_drawn() -> None:
    first = plugrad.randn(5).tolist()
    plugrad.manual_seed(1234)
    assert plugrad.randn(5).tolist() == first
    assert plugrad.randn(5).tolist() != first


def test_a_generator_of_one_s_own_leaves_the_default_one_alone() -> None:
    before = plugrad.get_rng_state()
    own = plugrad.Generator().manual_seed(7)
    drawn = plugrad.rand(3, generator=own).tolist()
    assert plugrad.rand(3, generator=plugrad.Generator().manual_seed(7)).tolist() == drawn
    assert own.initial_seed() == 7
    assert list(plugrad.get_rng_state()) == list(before)


def test_generator_state_can_be_restored() -> None:
    plugrad.randint(5, (3,), dtype=plugrad.int32)
    state = plugrad.get_rng_state()
    drawn = plugrad.randn(4).tolist()
    plugrad.set_rng_state(state)
    assert plugrad.randn(4).tolist() == drawn


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: plugrad.rand(2, dtype=plugrad.int64), NotImplementedError, "not implemented for"),
        (lambda: plugrad.randint(5, 3, (2,)), RuntimeError, "from=5 >= to=3"),
        (lambda: plugrad.randint(0, 300, (2,), dtype=plugrad.uint8), RuntimeError, "to - 1 is out"),
        (lambda: plugrad.randint(5), TypeError, "invalid combination of arguments"),
        (lambda: plugrad.randperm(-1), RuntimeError, "negative dimension -1"),
        (lambda: plugrad.normal(0.0, -1.0, (2,)), RuntimeError, "std >= 0.0, but found std -1"),
        (lambda: plugrad.ones(2).uniform_(3, 1), RuntimeError, "found from=3 > to=1"),
        (lambda: plugrad.ones(2).exponential_(-1), RuntimeError, "found lambda=-1"),
        (lambda: plugrad.ones(2).bernoulli_(2), RuntimeError, "but got p=2"),
        (lambda: plugrad.bernoulli(plugrad.tensor([2.0])), RuntimeError, "p_in >= 0 && p_in <= 1"),
        (lambda: plugrad.multinomial(plugrad.ones(2), 3), RuntimeError, "without replacement"),
        (lambda: plugrad.multinomial(plugrad.zeros(2), 1), RuntimeError, "sum of probabilities"),
        (lambda: plugrad.ones(2).fill_(1j), RuntimeError, "type float without overflow"),
        (lambda: plugrad.ones(2).fill_(plugrad.ones(1)), RuntimeError, "0-dimension value tensor"),
    ],
)
def test_impossible_requests(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_filling_stops_the_gradient() -> None:
    x = plugrad.ones(3, requires_grad=True)
    value = plugrad.tensor(2.0, requires_grad=True)
    y = x * 1
    y.fill_(value)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    assert value.grad.item() == 3
    z = x * 1
    assert z.zero_().grad_fn.name() == "ZeroBackward0"


def test_fill_diagonal() -> None:
    x = plugrad.zeros(7, 3)
    assert x.fill_diagonal_(1).sum().item() == 3
    assert plugrad.zeros(7, 3).fill_diagonal_(1, wrap=True).sum().item() == 6


def test_empty_strided_has_the_strides() -> None:
    made = plugrad.empty_strided((2, 3), (1, 2))
    assert made.stride() == (1, 2)
    assert made.shape == (2, 3)


@pytest.mark.parametrize(
    "call", ["zeros(2, {})", "normal(0.0, 1.0, (2,), {})", "randint_like(plugrad.ones(2), 3, {})"]
)
def test_ordinary_memory_may_be_asked_for(call: str) -> None:
    def made(options: str) -> Any:
        return eval(f"plugrad.{call.format(options)}")

    assert made("layout=plugrad.strided, pin_memory=False").shape == (2,)
    assert made("pin_memory=None, requires_grad=True").requires_grad
    with pytest.raises(TypeError, match=r"argument 'layout' must be plugrad\.strided, not int"):
        made("layout=1")
    with pytest.raises(TypeError, match="argument 'pin_memory' must be bool, not int"):
        made("pin_memory=1")
    with pytest.raises(RuntimeError, match="pin_memory=True is not supported"):
        made("pin_memory=True")
