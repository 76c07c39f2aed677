"""JAX with the CPU's random numbers. Oracle: the `cpu` backend."""

from __future__ import annotations

import pytest

import plugrad
import plugrad_jax


def draw(device: str) -> list[list[float]]:
    layer = plugrad.nn.Linear(4, 3, device=device)
    x = plugrad.randn(2, 4, device=device)
    dropped = plugrad.nn.functional.dropout(x, 0.3)
    rates = plugrad.full((5,), 4.0, device=device)
    found = (layer.weight, x, dropped, plugrad.poisson(rates), plugrad._standard_gamma(rates))
    return [tensor.detach().cpu().tolist() for tensor in found]


def test_a_seed_gives_the_numbers_of_the_cpu() -> None:
    plugrad.manual_seed(3)
    expected = draw("cpu")
    with plugrad.random.use_host_numbers():
        plugrad.manual_seed(3)
        assert draw("jax") == expected
    plugrad.manual_seed(3)
    assert draw("jax") != expected


def test_a_traced_function_refuses() -> None:
    step = plugrad_jax.jit(lambda x: x + plugrad.rand(2, device="jax"))
    with (
        plugrad.random.use_host_numbers(),
        pytest.raises(RuntimeError, match="not in a function that is traced"),
    ):
        step(plugrad.zeros(2, device="jax"))
