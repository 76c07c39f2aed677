"""Launches the generator of random bits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad_cuda.fused.launching import Array, Launcher, over_elements
from plugrad_cuda.fused.runtime import Runtime

EXPRESSIONS: Final = {"random": ("random_words",)}

# No operator: `plugrad_cuda.generator` draws.
LAUNCHERS: Final[dict[str, Launcher]] = {}

_WORD: Final = 1 << 64
_PER_THREAD: Final = 4


def random_words(run: Runtime, count: int, seed: int, draw: int, later: Array | None) -> Any:
    """`count` words of 32 random bits, the `draw`-th that a seed gives.

    Args:
        seed: below 2**64.
        later: None, or an array of one int64, which the kernel adds to the number of the draw.
    """
    out = run.xp.empty((count,), np.uint32)
    if count:
        grid, block = over_elements((count + _PER_THREAD - 1) // _PER_THREAD)
        signed = seed - _WORD if seed >= _WORD // 2 else seed
        run.launch("random", "random_words", grid, block, (out, count, signed, draw, later))
    return out
