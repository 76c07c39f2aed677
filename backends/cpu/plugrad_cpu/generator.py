"""The random generator of the CPU: NumPy's PCG64 with PyTorch's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from plugrad.plugins.generators import SeededGenerator

_WORD: Final = 1 << 64


class CpuGenerator(SeededGenerator):
    """A stream of random numbers; kernels draw from `rng`."""

    STATE_WORDS = 6
    rng: np.random.Generator

    def restart(self, seed: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(seed))

    def state_words(self) -> Sequence[int]:
        """The state of PCG64."""
        whole: Any = self.rng.bit_generator.state
        inner = whole["state"]
        return [
            inner["state"] // _WORD,
            inner["state"] % _WORD,
            inner["inc"] // _WORD,
            inner["inc"] % _WORD,
            whole["has_uint32"],
            whole["uinteger"],
        ]

    def set_state_words(self, seed: int, words: Sequence[int]) -> None:
        bits = np.random.PCG64()
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": words[0] * _WORD + words[1], "inc": words[2] * _WORD + words[3]},
            "has_uint32": words[4],
            "uinteger": words[5],
        }
        self.rng = np.random.Generator(bits)
