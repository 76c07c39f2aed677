"""Philox 4x32-10 in NumPy, after its definition: the oracle of the kernel, and its replacement."""

from __future__ import annotations

from typing import Any

import numpy as np

_MASK = (1 << 32) - 1


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Ten rounds on one counter, in Python's integers."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (
            (second >> 32) ^ b ^ low,
            second & _MASK,
            (first >> 32) ^ d ^ high,
            first & _MASK,
        )
        low, high = (low + 0x9E3779B9) & _MASK, (high + 0xBB67AE85) & _MASK
    return a, b, c, d


class PhiloxOnHost:
    """A `plugrad_cuda.fused.Runtime` with one kernel."""

    xp: Any = np
    check = False
    checks_indices = False

    def may_wait(self) -> bool:
        return False

    def launch(
        self, source: str, kernel: str, grid: int, block: tuple[int, int], args: tuple[Any, ...]
    ) -> None:
        assert (source, kernel) == ("random", "random_words")
        out, count, seed, draw, later = args
        number = draw + (0 if later is None else int(later[0]))
        words: list[int] = []
        for position in range((count + 3) // 4):
            words += philox(
                (position, 0, number & _MASK, number >> 32), (seed & _MASK, (seed >> 32) & _MASK)
            )
        out[...] = words[:count]
