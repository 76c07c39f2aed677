"""Kernels of Fourier transforms: SciPy's where it is installed, which are faster, else NumPy's; and
FFTW's, where pyFFTW is installed, for many elements."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from plugrad_cpu.numerics import fftw

Array = Any
Dims = tuple[int, ...]

# What one thread does in the time that it takes to wake another.
_ENOUGH: Final = 1 << 16


@cache
def _library() -> tuple[Any, bool]:
    """The module with the transforms, and whether it takes a number of threads."""
    try:
        from scipy import fft
    except ImportError:
        return np.fft, False
    return fft, True


@cache
def _threads() -> int:
    """As many as BLAS may use."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if allowed.isdigit():
        return max(1, int(allowed))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _transform(name: str, a: Array, dims: Dims, norm: str, lengths: Any = None) -> Array:
    """A transform of an array with elements, in the array's precision."""
    library, takes_workers = _library()
    # NumPy keeps the order of the memory, where results are to be in the row-major one.
    options: dict[str, Any] = {"axes": dims, "norm": norm}
    if lengths is not None:
        options["s"] = lengths
    if takes_workers:
        options["workers"] = _threads() if a.size >= _ENOUGH else 1
    return getattr(library, name)(np.ascontiguousarray(a), **options)


def _by_fftw(
    a: Array, made: tuple[Dims, Any], dims: Dims, mode: int, forward: bool, count: int
) -> Array | None:
    """A transform of `count` elements, if FFTW is there and worth loading."""
    if a.size < _ENOUGH or fftw.library() is None:
        return None
    found = fftw.transform(a, made, dims, forward, _threads())
    if mode:
        found *= found.real.dtype.type(1 / math.sqrt(count) if mode == 1 else 1 / count)
    return found


def _norm(mode: int, forward: bool) -> str:
    if mode == 1:
        return "ortho"
    return "backward" if (mode == 0) == forward else "forward"


def _count(shape: Dims, dims: Dims) -> int:
    return math.prod([shape[dim] for dim in dims])


def c2c(a: Array, dims: Dims, mode: int, forward: bool) -> Array:
    if a.size == 0 or not dims:
        return a.copy()
    count = _count(a.shape, dims)
    found = _by_fftw(a, (a.shape, a.dtype), dims, mode, forward, count)
    if found is not None:
        return found
    return _transform("fftn" if forward else "ifftn", a, dims, _norm(mode, forward))


def r2c(a: Array, dims: Dims, mode: int, onesided: bool) -> Array:
    half = list(a.shape)
    half[dims[-1]] = half[dims[-1]] // 2 + 1
    dtype = np.result_type(a.dtype, np.complex64)
    if a.size == 0:
        return np.empty(half if onesided else a.shape, dtype)
    if onesided or len(dims) == 1:
        made = _by_fftw(a, (tuple(half), dtype), dims, mode, True, _count(a.shape, dims))
        if made is not None:
            return made if onesided else _mirrored(made, dims[0], a.shape[dims[0]])
    found = _transform("rfftn" if onesided else "fftn", a, dims, _norm(mode, True))
    if not onesided and len(dims) == 1:
        # SciPy, which mirrors the half, makes them -0.
        found[_real_elements(found, dims[0])].imag = 0
    return found


def _mirrored(half: Array, dim: int, length: int) -> Array:
    """The whole spectrum of real numbers."""
    count = half.shape[dim]
    before = (slice(None),) * dim
    found = np.empty((*half.shape[:dim], length, *half.shape[dim + 1 :]), half.dtype)
    found[(*before, slice(count))] = half
    np.conjugate(
        half[(*before, slice(length - count, 0, -1))], found[(*before, slice(count, None))]
    )
    return found


def _real_elements(a: Array, dim: int) -> tuple[slice, ...]:
    """Where the spectrum of real numbers is real: the sum, and for an even length the middle."""
    count = a.shape[dim]
    step = count // 2 if count % 2 == 0 else count
    return (*[slice(None)] * dim, slice(None, None, step))


def c2r(a: Array, dims: Dims, mode: int, last_dim_size: int) -> Array:
    shape = list(a.shape)
    shape[dims[-1]] = last_dim_size
    if a.size == 0:
        return np.empty(shape, a.real.dtype)
    made = tuple(shape), a.real.dtype
    found = _by_fftw(a, made, dims, mode, False, _count(made[0], dims))
    if found is not None:
        return found
    lengths = [*[a.shape[dim] for dim in dims[:-1]], last_dim_size]
    return _transform("irfftn", a, dims, _norm(mode, False), lengths)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_fft_c2c": c2c,
    "_fft_r2c": r2c,
    "_fft_c2r": c2r,
}
