"""Fourier transforms by FFTW, which has vector code for single transforms and for short ones.

A plan says how FFTW computes a transform of arrays of one size and layout. It is estimated, not
measured: that takes well under a millisecond, and no run of a program differs from the next one.

Source: Frigo and Johnson, The Design and Implementation of FFTW3, Proc. IEEE 93 (2005).
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from functools import cache
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import is_wanted

Array = Any
Dims = tuple[int, ...]
Shape = tuple[int, ...]

# Plans that are kept, each with its tables of roots of unity.
_KEPT: Final = 32
# NumPy's memory starts at multiples of so many bytes; a view may start elsewhere.
_ALIGNMENT: Final = 16


@cache
def library() -> Any:
    """pyFFTW; None where it is not installed or not wanted."""
    if not is_wanted():
        return None
    try:
        import pyfftw
    except ImportError:
        return None
    return pyfftw


def _stand_in(shape: Shape, dtype: Any) -> Array:
    """An array that nobody writes to, so that it takes no memory; not aligned to more than what
    all arrays are, since a plan asks for the alignment that it was made for."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 4 * _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % (2 * _ALIGNMENT) + _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


class _Plan:
    """A plan, and arrays that stand in for those of a call."""

    def __init__(
        self, read: tuple[Shape, Any], made: tuple[Shape, Any], dims: Dims, way: str, threads: int
    ) -> None:
        self.made = made
        self.free = _stand_in(*read), _stand_in(*made)
        flags = ["FFTW_ESTIMATE"]
        if _halves(read, made):
            # In several dimensions there is no other plan.
            flags.append("FFTW_DESTROY_INPUT")
        self.plan = library().FFTW(*self.free, dims, way, flags, threads)

    def run(self, a: Array) -> Array:
        made = np.empty(*self.made)
        self.plan.update_arrays(a, made)
        try:
            self.plan.execute()
        finally:
            self.plan.update_arrays(*self.free)
        return made


def _halves(read: tuple[Shape, Any], made: tuple[Shape, Any]) -> bool:
    """Whether a plan makes real numbers of half a spectrum."""
    return bool(read[1].kind == "c" and made[1].kind == "f")


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


_plans: Final = _Plans()


def transform(a: Array, made: tuple[Shape, Any], dims: Dims, forward: bool, threads: int) -> Array:
    """A transform that is not scaled, of an array with elements. `made` are the shape and the
    dtype of the result: of real numbers, of a half of a spectrum, or of all of it."""
    read = a.shape, a.dtype
    if _halves(read, made) or not a.flags.c_contiguous or a.ctypes.data % _ALIGNMENT:
        a = a.copy()
    key = read, made, dims, forward, threads
    plan = _plans.take(key)
    if plan is None:
        plan = _Plan(read, made, dims, "FFTW_FORWARD" if forward else "FFTW_BACKWARD", threads)
    found = plan.run(a)
    _plans.rest(key, plan)
    return found
