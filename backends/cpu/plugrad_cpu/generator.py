"""The random generator of the CPU: NumPy's PCG64 with PyTorch's interface."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

_WORD = 1 << 64
_STATE_WORDS = 7


class CpuGenerator:
    """A stream of random numbers; kernels draw from `rng`."""

    rng: np.random.Generator

    def __init__(self, seed: int | None = None) -> None:
        self.manual_seed(secrets.randbits(63) if seed is None else seed)

    def manual_seed(self, seed: int) -> CpuGenerator:
        """Start again from a seed in [-2**63, 2**64); returns the generator.

        Raises RuntimeError for a seed outside.
        """
        number = int(seed)
        if not -(_WORD // 2) <= number < _WORD:
            raise RuntimeError(
                "Overflow when unpacking long long: expected a seed in "
                f"[-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff], got {seed}"
            )
        self._seed = number % _WORD
        self.rng = np.random.Generator(np.random.PCG64(self._seed))
        return self

    def seed(self) -> int:
        """Start again from a seed that the operating system picks; returns it."""
        self.manual_seed(secrets.randbits(63))
        return self._seed

    def initial_seed(self) -> int:
        """The seed the stream started from."""
        return self._seed

    def get_state(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The position in the stream as bytes: the seed, then the state of PCG64."""
        whole: Any = self.rng.bit_generator.state
        inner = whole["state"]
        words = [
            self._seed,
            inner["state"] // _WORD,
            inner["state"] % _WORD,
            inner["inc"] // _WORD,
            inner["inc"] % _WORD,
            whole["has_uint32"],
            whole["uinteger"],
        ]
        return np.array(words, np.uint64).view(np.uint8)

    def set_state(self, state: Any) -> None:
        """Go to a position that `get_state` gave; RuntimeError for anything else."""
        data = np.ascontiguousarray(state)
        if data.dtype != np.uint8 or data.size != _STATE_WORDS * 8:
            raise RuntimeError(
                f"set_state(): expected the {_STATE_WORDS * 8} bytes (uint8) that get_state() "
                f"returns, got {data.size} elements of {data.dtype}"
            )
        words = [int(word) for word in data.reshape(-1).view(np.uint64)]
        self._seed = words[0]
        bits = np.random.PCG64()
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": words[1] * _WORD + words[2], "inc": words[3] * _WORD + words[4]},
            "has_uint32": words[5],
            "uinteger": words[6],
        }
        self.rng = np.random.Generator(bits)
