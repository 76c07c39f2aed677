"""Kernels of Fourier transforms: cuFFT through CuPy, in the precision of the input."""

from __future__ import annotations

from typing import Any

from plugrad_cuda.kernels.family import Family
from plugrad_cuda.kernels.namespace import Array, Kernel

Dims = tuple[int, ...]


def _norm(mode: int, forward: bool) -> str:
    if mode == 1:
        return "ortho"
    return "backward" if (mode == 0) == forward else "forward"


class Spectral(Family):
    """cuFFT has no transforms of empty arrays. Transforms of real numbers end with the last
    dimension."""

    def kernels(self) -> dict[str, Kernel]:
        return {"_fft_c2c": self.c2c, "_fft_r2c": self.r2c, "_fft_c2r": self.c2r}

    def c2c(self, a: Array, dims: Dims, mode: int, forward: bool) -> Any:
        if a.size == 0 or not dims:
            return a.copy()
        transform = self.xp.fft.fftn if forward else self.xp.fft.ifftn
        return self._in_order(transform(a, axes=dims, norm=_norm(mode, forward)))

    def r2c(self, a: Array, dims: Dims, mode: int, onesided: bool) -> Any:
        last = dims[-1]
        dtype = "complex128" if a.dtype == "float64" else "complex64"
        if a.size == 0:
            count = a.shape[last] // 2 + 1 if onesided else a.shape[last]
            return self.xp.empty((*a.shape[:last], count, *a.shape[last + 1 :]), dtype)
        norm = _norm(mode, True)
        if onesided:
            return self._in_order(self.xp.fft.rfftn(a, axes=dims, norm=norm))
        return self._in_order(self.xp.fft.fftn(a.astype(dtype), axes=dims, norm=norm))

    def c2r(self, a: Array, dims: Dims, mode: int, last_dim_size: int) -> Any:
        last = dims[-1]
        if a.size == 0:
            shape = (*a.shape[:last], last_dim_size, *a.shape[last + 1 :])
            return self.xp.empty(shape, a.real.dtype)
        norm = _norm(mode, False)
        half = a
        if len(dims) > 1:
            half = self.xp.fft.ifftn(a, axes=dims[:-1], norm=norm)
        # cuFFT leaves open what becomes of the imaginary part of what must be real.
        half = half.copy()
        ends = (0, last_dim_size // 2) if last_dim_size % 2 == 0 else (0,)
        for end in ends:
            half[(*(slice(None),) * last, slice(end, end + 1))].imag = 0
        return self._in_order(self.xp.fft.irfft(half, last_dim_size, axis=last, norm=norm))

    def _in_order(self, a: Array) -> Any:
        """Plans put other dimensions last, and give a view."""
        return self.xp.ascontiguousarray(a)
