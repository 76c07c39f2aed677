"""`plugrad.random.use_host_numbers`: the CPU draws for every device. Oracle: the CPU's numbers and
the states of the generators."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import plugrad

DRAWS: dict[str, Callable[[str], Any]] = {
    "rand": lambda d: plugrad.rand(3, 4, device=d),
    "randn": lambda d: plugrad.randn(20, device=d),
    "randperm": lambda d: plugrad.randperm(9, device=d),
    "normal_": lambda d: plugrad.empty(20, device=d).normal_(1, 2),
    "cauchy_": lambda d: plugrad.empty(9, device=d).cauchy_(),
    "log_normal_": lambda d: plugrad.empty(9, device=d).log_normal_(),
    "geometric_": lambda d: plugrad.empty(9, device=d).geometric_(0.2),
    "bernoulli": lambda d: plugrad.full((9,), 0.4, device=d).bernoulli(),
    "multinomial": lambda d: plugrad.ones(9, device=d).multinomial(3),
    "poisson": lambda d: plugrad.poisson(plugrad.full((9,), 4.0, device=d)),
    "binomial": lambda d: plugrad.binomial(*plugrad.tensor([[40.0] * 5, [0.4] * 5], device=d)),
    "gamma": lambda d: plugrad._standard_gamma(plugrad.full((9,), 4.0, device=d)),
    "dirichlet": lambda d: plugrad._sample_dirichlet(plugrad.full((2, 3), 4.0, device=d)),
    "dropout": lambda d: plugrad.nn.functional.dropout(plugrad.ones(30, device=d), 0.3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_cpus_generator_draws(name: str, second_backend: str) -> None:
    draw = DRAWS[name]
    plugrad.manual_seed(5)
    expected = draw("cpu")
    after = plugrad.get_rng_state()
    plugrad.manual_seed(5)
    own = plugrad.random.default_generator(second_backend)
    own.manual_seed(77)
    before = own.get_state()
    with plugrad.random.use_host_numbers():
        drawn = draw(second_backend)
    assert drawn.device == plugrad.device(second_backend)
    assert drawn.tolist() == expected.tolist()
    assert plugrad.equal(plugrad.get_rng_state(), after)
    assert plugrad.equal(own.get_state(), before)


def test_it_ends_with_the_block_and_can_be_set_for_good(second_backend: str) -> None:
    own = plugrad.random.default_generator(second_backend)

    def draws_itself() -> bool:
        before = own.get_state()
        plugrad.rand(2, device=second_backend)
        return not plugrad.equal(own.get_state(), before)

    with plugrad.random.use_host_numbers():
        assert not draws_itself()
        with plugrad.random.use_host_numbers(False):
            assert draws_itself()
        assert not draws_itself()
    assert draws_itself()
    plugrad.random.use_host_numbers()
    try:
        assert not draws_itself()
        found = []
        thread = threading.Thread(target=lambda: found.append(draws_itself()))
        thread.start()
        thread.join()
        assert found == [True]
    finally:
        plugrad.random.use_host_numbers(False)
    assert draws_itself()


def test_generators_are_the_cpus(second_backend: str) -> None:
    generator = plugrad.Generator().manual_seed(3)
    with plugrad.random.use_host_numbers():
        drawn = plugrad.rand(2, device=second_backend, generator=generator)
    expected = plugrad.rand(2, generator=generator.manual_seed(3))
    assert drawn.tolist() == expected.tolist()
