"""What generators of all backends have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from plugrad.plugins import Generator
from plugrad.plugins.generators import SeededGenerator


class TwoWords(SeededGenerator):
    STATE_WORDS = 2
    words: list[int]

    def restart(self, seed: int) -> None:
        if seed == 13:
            raise RuntimeError("no")
        self.words = [seed, 0]

    def state_words(self) -> Sequence[int]:
        return self.words

    def set_state_words(self, seed: int, words: Sequence[int]) -> None:
        self.words = list(words)


def test_it_has_the_methods_of_a_generator() -> None:
    assert isinstance(TwoWords(0), Generator)


@pytest.mark.parametrize("seed", [0, -1, -(2**63), 2**64 - 1])
def test_a_seed_is_taken_as_a_word(seed: int) -> None:
    generator = TwoWords(seed)
    assert generator.initial_seed() == seed % 2**64
    assert generator.words == [seed % 2**64, 0]


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_outside(seed: int) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        TwoWords(seed)


def test_seeds_of_the_operating_system_differ() -> None:
    generator = TwoWords()
    first = generator.initial_seed()
    assert generator.seed() == generator.initial_seed() != first


def test_a_restart_that_fails_leaves_the_seed() -> None:
    generator = TwoWords(5)
    with pytest.raises(RuntimeError, match="no"):
        generator.manual_seed(13)
    assert generator.initial_seed() == 5


def test_a_state_holds_seed_and_words() -> None:
    generator = TwoWords(2**64 - 1)
    generator.words = [1, 2**64 - 1]
    state = generator.get_state()
    assert state.dtype == np.uint8
    assert state.view(np.uint64).tolist() == [2**64 - 1, 1, 2**64 - 1]
    other = TwoWords(0)
    other.set_state(state)
    assert other.initial_seed() == 2**64 - 1
    assert other.words == [1, 2**64 - 1]


def test_anything_else_is_no_state() -> None:
    generator = TwoWords(0)
    for state in (np.zeros(8, np.uint8), np.zeros(3, np.uint64)):
        with pytest.raises(RuntimeError, match="expected the 24 bytes"):
            generator.set_state(state)
