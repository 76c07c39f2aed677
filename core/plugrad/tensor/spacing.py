"""Numbers at equal distances, for `linspace` and `logspace` on every backend.

Backends find it in `plugrad.plugins.spacing`.
"""

from __future__ import annotations

# Interpreted: what it calls takes longer.
from typing import Any


def spaced(xp: Any, start: Any, end: Any, steps: int, whole: bool) -> Any:
    """`steps` numbers from `start` to `end`, as the array library likes them: to be cast.

    They are counted from both ends towards the middle, so that both are exact.

    Args:
        xp: the array library, a namespace with the names of the array API standard.
        whole: cut the ends down to integers first, as for a result that has integers.

    >>> import numpy as np
    >>> from plugrad.plugins.spacing import spaced
    >>> spaced(np, 0.0, 1.0, 5, False)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if whole:
        start, end = int(start), int(end)
    if steps < 2:
        return xp.full((steps,), start)
    places = xp.arange(steps, dtype=xp.int64)
    step = (end - start) / (steps - 1)
    first_half = places < steps // 2
    return xp.where(first_half, start + step * places, end - step * (steps - 1 - places))
