"""Kernels of Fourier transforms: SciPy's if it is installed, which are faster, else NumPy's; and
for many elements FFTW's, if pyFFTW is installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from plugrad_cpu.numerics import fftw
from plugrad_cpu.numerics.fourier import Transform, pair_loops
from plugrad_cpu.numerics.threads import thread_count

Array = Any
Dims = tuple[int, ...]

# From here on FFTW transforms rows of real numbers faster than SciPy does.
_LONG: Final = 1 << 14
# What one thread does in the time that it takes to wake another.
_ENOUGH: Final = 1 << 16


@cache
def _library() -> Any:
    """The module with the transforms.

    SciPy's are not given threads: they wait in a pool that SciPy empties before each fork, and now
    and then one of them sleeps through that, so that the fork never ends.
    """
    try:
        from scipy import fft
    except ImportError:
        return np.fft
    return fft


def _transform(name: str, a: Array, dims: Dims, norm: str, lengths: Any = None) -> Array:
    """A transform of an array with elements, in the array's precision."""
    # NumPy keeps the order of the memory, where results are to be in the row-major one.
    options: dict[str, Any] = {"axes": dims, "norm": norm}
    if lengths is not None:
        options["s"] = lengths
    return getattr(_library(), name)(np.ascontiguousarray(a), **options)


def _fftw(a: Array, forward: bool) -> Transform | None:
    """FFTW, if it is installed and worth loading."""
    if a.size < _ENOUGH or fftw.library() is None:
        return None
    return Transform(forward, thread_count())


def _scaled(found: Array, mode: int, shape: Dims, dims: Dims) -> Array:
    """A transform of elements of this shape, which it has changed in place."""
    if mode:
        count = math.prod([shape[dim] for dim in dims])
        found *= found.real.dtype.type(1 / math.sqrt(count) if mode == 1 else 1 / count)
    return found


def _norm(mode: int, forward: bool) -> str:
    if mode == 1:
        return "ortho"
    return "backward" if (mode == 0) == forward else "forward"


def c2c(a: Array, dims: Dims, mode: int, forward: bool) -> Array:
    if a.size == 0 or not dims:
        return a.copy()
    if transform := _fftw(a, forward):
        return _scaled(transform.whole(a, dims), mode, a.shape, dims)
    return _transform("fftn" if forward else "ifftn", a, dims, _norm(mode, forward))


def r2c(a: Array, dims: Dims, mode: int, onesided: bool) -> Array:
    if a.size == 0:
        shape = list(a.shape)
        if onesided:
            shape[dims[-1]] = shape[dims[-1]] // 2 + 1
        return np.empty(shape, np.result_type(a.dtype, np.complex64))
    is_last = dims[-1] == a.ndim - 1 and (onesided or len(dims) == 1)
    if is_last and (transform := _fftw(a, True)):
        is_long = len(dims) == 1 and a.shape[-1] >= _LONG
        if is_long or pair_loops(a.shape[-1], a.size, a.dtype):
            half = _scaled(transform.half(a, dims), mode, a.shape, dims)
            return half if onesided else _mirrored(half, a.shape[-1])
    found = _transform("rfftn" if onesided else "fftn", a, dims, _norm(mode, True))
    if not onesided and len(dims) == 1:
        # SciPy, which mirrors the half, makes them -0.
        found[_real_elements(found, dims[0])].imag = 0
    return found


def _mirrored(half: Array, length: int) -> Array:
    """The whole spectrum of real numbers."""
    count = half.shape[-1]
    found = np.empty((*half.shape[:-1], length), half.dtype)
    found[..., :count] = half
    np.conjugate(half[..., length - count : 0 : -1], found[..., count:])
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
    is_last = dims[-1] == a.ndim - 1 and a.shape[-1] == last_dim_size // 2 + 1
    by_pairs = is_last and pair_loops(last_dim_size, math.prod(shape), a.real.dtype)
    if by_pairs and (transform := _fftw(a, False)):
        found = transform.real(a, dims, last_dim_size)
        return _scaled(found, mode, tuple(shape), dims)
    lengths = [shape[dim] for dim in dims]
    return _transform("irfftn", a, dims, _norm(mode, False), lengths)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_fft_c2c": c2c,
    "_fft_r2c": r2c,
    "_fft_c2r": c2r,
}
