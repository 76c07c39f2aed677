"""Random numbers on JAX: keys behind PyTorch's interface."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import plugrad
from plugrad_jax.generator import JaxGenerator


def test_a_seed_gives_the_same_numbers() -> None:
    plugrad.manual_seed(5)
    first = plugrad.rand(4, device="jax").tolist()
    assert plugrad.rand(4, device="jax").tolist() != first
    plugrad.manual_seed(5)
    assert plugrad.rand(4, device="jax").tolist() == first


def test_devices_have_generators_of_their_own() -> None:
    plugrad.manual_seed(5)
    first = plugrad.rand(4, device="jax:0").tolist()
    plugrad.manual_seed(5)
    plugrad.rand(4, device="jax:1")
    assert plugrad.rand(4, device="jax:0").tolist() == first


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63, 2**64 - 1])
def test_the_key_is_threefrys_own(seed: int) -> None:
    generator = JaxGenerator(0, seed)
    assert generator.initial_seed() == seed % 2**64
    words = np.asarray(generator.key).tolist()
    assert words == [(seed % 2**64) >> 32, seed % 2**32]


def test_a_seed_outside() -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        JaxGenerator(0, 2**64)


def test_a_state_is_the_place_in_the_stream() -> None:
    generator = JaxGenerator(1, 7)
    generator.next_key()
    state = generator.get_state()
    following = np.asarray(generator.next_key()).tolist()
    other = JaxGenerator(1)
    other.set_state(state)
    assert np.asarray(other.next_key()).tolist() == following
    assert other.initial_seed() == 7
    with pytest.raises(RuntimeError, match="expected the 16 bytes"):
        other.set_state(state[:4])


def test_a_key_that_is_traced_goes_through_the_program() -> None:
    generator = JaxGenerator(0, 3)
    start = generator.key

    @jax.jit
    def step(key: Any) -> tuple[Any, Any]:
        generator.key = key
        drawn = generator.next_key()
        return generator.key, drawn

    following, drawn = step(start)
    eager = JaxGenerator(0, 3)
    assert np.asarray(eager.next_key()).tolist() == np.asarray(drawn).tolist()
    assert np.asarray(eager.key).tolist() == np.asarray(following).tolist()


def test_a_key_that_is_not_traced_is_a_constant_of_the_program() -> None:
    generator = JaxGenerator(0, 3)
    step = jax.jit(lambda x: x + generator.next_key())
    drawn = step(np.uint32(0))
    assert np.asarray(JaxGenerator(0, 3).next_key()).tolist() == np.asarray(drawn).tolist()
    assert not isinstance(generator.key, jax.core.Tracer)  # nothing has leaked
