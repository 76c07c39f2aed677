"""The generator of a GPU: Philox by its published answers, and the numbers made from its bits."""

from __future__ import annotations

import numpy as np
import pytest

from plugrad_cuda.fused.random import random_words
from plugrad_cuda.generator import CudaGenerator
from tests.cuda.emulation.build import compiler
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.runtime.philox import PhiloxOnHost, philox

MANY = 20_000


def made(seed: int = 7) -> CudaGenerator:
    return CudaGenerator(0, PhiloxOnHost()).manual_seed(seed)


def test_the_oracle_gives_the_published_answers() -> None:
    # Known answers of the authors' library, Random123.
    ones = (1 << 32) - 1
    assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((ones,) * 4, (ones,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)


@pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("count", [1, 4, 1003])
@pytest.mark.parametrize("seed", [0, 12345678901234567890])
def test_the_kernel_gives_philox_words(count: int, seed: int) -> None:
    later = np.array([1 << 33], np.int64)
    for cell in (None, later):
        found = random_words(Emulation(), count, seed, 5, cell)
        expected = random_words(PhiloxOnHost(), count, seed, 5, cell)
        assert np.array_equal(found, expected)


def test_draws_follow_from_the_seed() -> None:
    first, second = made(), made()
    a = first.rng.random((2, 3), np.float32)
    b = first.rng.random((2, 3), np.float32)
    assert np.array_equal(second.rng.random((2, 3), np.float32), a)
    assert np.array_equal(second.rng.random((2, 3), np.float32), b)
    assert not np.array_equal(a, b)
    assert not np.array_equal(made(8).rng.random((2, 3), np.float32), a)


def test_the_state_is_the_seed_and_the_number_of_draws() -> None:
    generator = made()
    generator.rng.random(3)
    state = generator.get_state()
    assert state.dtype == np.uint8
    expected = generator.rng.random(3)
    other = made(1)
    other.set_state(state)
    assert np.array_equal(other.rng.random(3), expected)
    assert other.initial_seed() == 7
    with pytest.raises(RuntimeError, match="expected the 16 bytes"):
        other.set_state(np.zeros(3, np.uint8))


def test_seeds_are_64_bits() -> None:
    generator = made(-1)
    assert generator.initial_seed() == 2**64 - 1
    assert generator.seed() == generator.initial_seed()
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        generator.manual_seed(2**64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_numbers(dtype: type) -> None:
    drawn = made().rng.random(MANY, dtype)
    assert drawn.dtype == dtype
    assert 0 <= drawn.min() < 1e-3
    assert 0.999 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.01
    assert abs(drawn.var() - 1 / 12) < 0.005


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers(dtype: type) -> None:
    drawn = made().rng.standard_normal((MANY // 2 + 1, 2), dtype)
    assert drawn.dtype == dtype
    assert np.isfinite(drawn).all()
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.var() - 1) < 0.03
    assert abs((drawn**4).mean() - 3) < 0.2
    assert made().rng.standard_normal(3).shape == (3,)


def test_integers() -> None:
    drawn = made().rng.integers(-3, 4, (MANY,))
    assert drawn.dtype == np.int64
    assert np.array_equal(np.unique(drawn), np.arange(-3, 4))
    assert abs(drawn.mean()) < 0.05
    whole = made().rng.integers(-(2**63), 2**63, (100,))
    assert (whole < 0).any()
    assert (whole > 0).any()


def test_exponential_numbers() -> None:
    drawn = made().rng.standard_exponential(MANY)
    assert drawn.min() >= 0
    assert abs(drawn.mean() - 1) < 0.03
    assert abs(drawn.var() - 1) < 0.1


def test_an_offset_goes_to_a_number_of_draws() -> None:
    first, second = made(), made()
    first.rng.random((3,))
    second.set_offset(first.get_offset())
    assert second.get_offset() > 0
    assert np.array_equal(first.rng.random((3,)), second.rng.random((3,)))
