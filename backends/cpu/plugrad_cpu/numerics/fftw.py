"""Fourier transforms of rows by FFTW, which has vector code for single transforms and short ones.

A plan describes how FFTW transforms a number of rows of one length. It is estimated, not measured,
so a program computes the same bits in each run. The estimate is good for contiguous rows;
`plugrad_cpu.numerics.fourier` copies other arrays first.

Source: Frigo and Johnson, The Design and Implementation of FFTW3, Proc. IEEE 93 (2005).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import is_wanted

Array = Any

# Plans that are kept, each with its table of roots of unity.
_KEPT: Final = 32
# NumPy's memory starts at multiples of so many bytes; a view may start elsewhere.
_ALIGNMENT: Final = 16


@cache
def library() -> Any:
    """pyFFTW; None if it is not installed or is disabled."""
    if not is_wanted():
        return None
    try:
        import pyfftw
    except ImportError:
        return None
    return pyfftw


def is_aligned(a: Array) -> bool:
    """Whether a plan takes an array as it is."""
    address: int = a.ctypes.data
    return address % _ALIGNMENT == 0


def _stand_in(like: Array) -> Array:
    """An array that is never written to, so it uses no memory. It has only the alignment that all
    arrays have, because a plan requires the alignment that it was made for."""
    size = like.shape[0] * like.strides[0]
    memory = np.empty(size + 4 * _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % (2 * _ALIGNMENT) + _ALIGNMENT
    rows = memory[start : start + size].view(like.dtype).reshape(like.shape[0], -1)
    return rows[:, : like.shape[1]]


class _Plan:
    """A plan, and placeholders for the arrays of a call."""

    def __init__(self, read: Array, made: Array, way: str) -> None:
        self.free = _stand_in(read), _stand_in(made)
        self.plan = library().FFTW(*self.free, (1,), way, ("FFTW_ESTIMATE",))

    def run(self, read: Array, made: Array) -> None:
        self.plan.update_arrays(read, made)
        try:
            self.plan.execute()
        finally:
            self.plan.update_arrays(*self.free)


class _Plans:
    """Plans that are at rest. A thread takes one away while it uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resting: OrderedDict[object, list[_Plan]] = OrderedDict()

    def take(self, key: object) -> _Plan | None:
        with self._lock:
            resting = self._resting.get(key)
            return resting.pop() if resting else None

    def rest(self, key: object, plan: _Plan) -> None:
        with self._lock:
            self._resting.setdefault(key, []).append(plan)
            self._resting.move_to_end(key)
            while len(self._resting) > _KEPT:
                self._resting.popitem(last=False)

    def __len__(self) -> int:
        return len(self._resting)


plans: Final = _Plans()


def transform_rows(read: Array, made: Array, forward: bool) -> None:
    """Unscaled transforms of the rows of one matrix into the rows of another.

    Each row is contiguous, and both matrices are aligned. For real numbers the result is half of
    the spectrum.
    """
    key = (read.shape, read.strides, read.dtype, made.shape, made.strides, forward)
    plan = plans.take(key)
    if plan is None:
        plan = _Plan(read, made, "FFTW_FORWARD" if forward else "FFTW_BACKWARD")
    plan.run(read, made)
    plans.rest(key, plan)
