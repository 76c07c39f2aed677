"""A backend that draws no random numbers gets the CPU's: the same seed, the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
from tests.core.ops.decompositions.bare_backend import bare_backend


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[str]:
    with bare_backend("core") as name:
        yield name


def filled(fill: Callable[[Any], Any], dtype: plugrad.dtype = plugrad.float32) -> Any:
    return lambda on: fill(plugrad.zeros(3, 4, dtype=dtype, device=on))


DRAWS: dict[str, Callable[[str], Any]] = {
    "rand": lambda d: plugrad.rand(3, 4, device=d),
    "rand of float64": lambda d: plugrad.rand(3, dtype=plugrad.float64, device=d),
    "randn": lambda d: plugrad.randn(3, 4, device=d),
    "randint": lambda d: plugrad.randint(10, (5,), device=d),
    "randint from": lambda d: plugrad.randint(-3, 10, (5,), dtype=plugrad.int8, device=d),
    "randperm": lambda d: plugrad.randperm(9, device=d),
    "rand_like": lambda d: plugrad.rand_like(plugrad.zeros(4, device=d)),
    "normal": lambda d: plugrad.normal(plugrad.zeros(4, device=d), 2.0),
    "bernoulli": lambda d: plugrad.full((20,), 0.5, device=d).bernoulli(),
    "bernoulli of p": lambda d: plugrad.zeros(20, device=d).bernoulli(0.3),
    "multinomial": lambda d: plugrad.tensor([1.0, 2.0, 3.0], device=d).multinomial(5, True),
    "uniform_": filled(lambda t: t.uniform_(-1, 1)),
    "normal_": filled(lambda t: t.normal_(1, 2)),
    "exponential_": filled(lambda t: t.exponential_(2.0)),
    "bernoulli_": filled(lambda t: t.bernoulli_(0.5)),
    "bernoulli_ of tensor": filled(lambda t: t.bernoulli_(plugrad.full_like(t, 0.5))),
    "random_": filled(lambda t: t.random_(), plugrad.int16),
    "random_ to": filled(lambda t: t.random_(7), plugrad.int64),
    "random_ from": filled(lambda t: t.random_(-7, 7), plugrad.int64),
    "dropout": lambda d: plugrad.nn.functional.dropout(plugrad.ones(30, device=d), 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_numbers_of_the_cpu(name: str, device: str) -> None:
    plugrad.manual_seed(7)
    drawn = DRAWS[name](device)
    again = DRAWS[name](device)
    plugrad.manual_seed(7)
    expected = DRAWS[name]("cpu")
    assert drawn.device == plugrad.device(device)
    assert drawn.dtype is expected.dtype
    assert drawn.tolist() == expected.tolist()
    assert again.tolist() != expected.tolist()


def test_a_generator_is_one_of_the_cpu(device: str) -> None:
    generator = plugrad.Generator()
    generator.manual_seed(3)
    drawn = plugrad.rand(4, generator=generator, device=device)
    generator.manual_seed(3)
    assert drawn.tolist() == plugrad.rand(4, generator=generator).tolist()


def test_another_generator_is_refused(device: str) -> None:
    class Foreign:
        def manual_seed(self, seed: int) -> None: ...

    for draw in (
        lambda: plugrad.rand(4, generator=Foreign(), device=device),
        lambda: plugrad.zeros(4, device=device).normal_(generator=Foreign()),
        lambda: plugrad.full((4,), 0.5, device=device).bernoulli(generator=Foreign()),
    ):
        with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator"):
            draw()


def test_arguments_are_checked_as_ever(device: str) -> None:
    with pytest.raises(RuntimeError, match=r"uniform_ expects to return a \[from, to\) range"):
        plugrad.zeros(2, device=device).uniform_(1, 0)
    with pytest.raises(RuntimeError, match="negative dimension"):
        plugrad.rand(-1, device=device)
    with pytest.raises(RuntimeError, match="p_in >= 0"):
        plugrad.full((2,), 2.0, device=device).bernoulli()


def test_a_view_is_filled_where_it_is(device: str) -> None:
    x = plugrad.zeros(2, 3, device=device)
    x[0].uniform_(1, 2)
    assert x[0].min().item() >= 1
    assert x[1].tolist() == [0.0, 0.0, 0.0]
