"""The permutation that a series of exchanges makes of 0, 1, 2, ..., computed in whole passes.

Step i exchanges the elements at i and at a place t(i) >= i. What it puts at i stays there: it was
at t(i), where the latest earlier step with the same place has put it, or t(i) itself if there is
none. What a step puts at t(i) is what it found at i, which the latest step with t(j) = i has put
there, and so on: these chains are short, and are followed all at once, by steps of doubled length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad_cpu.numerics.sorting import stable_order

Array = np.ndarray[Any, Any]


def exchanged(distances: Array) -> Array:
    """The numbers 0 to n - 1 after n - 1 steps, as int64: step i exchanges i and i + distance."""
    count = distances.size + 1
    steps = np.arange(count)
    places = np.zeros(count, np.int64)
    np.copyto(places[:-1], distances, casting="unsafe")
    places += steps
    # Steps to the same place are neighbours, in their order; each place has the last one of them.
    order = stable_order(places)
    ordered = places.take(order)
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    found = _first_found(steps, places)
    places[order.take(again + 1)] = found.take(order.take(again))
    return places


def _first_found(steps: Array, places: Array) -> Array:
    """What each step finds at its own place."""
    found = steps.copy()
    moved = np.flatnonzero(places > steps)
    # If several numbers go to one place, NumPy keeps the last.
    found[places.take(moved)] = moved
    waiting = np.flatnonzero(found != steps)
    while waiting.size:
        before = found.take(waiting)
        following = found.take(before)
        found[waiting] = following
        waiting = waiting[following != before]
    return found
