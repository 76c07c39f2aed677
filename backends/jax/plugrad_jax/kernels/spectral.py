"""Kernels of Fourier transforms."""

from __future__ import annotations

from typing import Any, Final

import jax.numpy as jnp

from plugrad_jax.kernels.programs import Array, Kernel, compiled

Dims = tuple[int, ...]

# As many dimensions as XLA transforms at a time.
_AT_ONCE: Final = 3


def _norm(mode: int, forward: bool) -> str:
    if mode == 1:
        return "ortho"
    return "backward" if (mode == 0) == forward else "forward"


def _rest(a: Array, dims: Dims, mode: int, forward: bool) -> Array:
    """A transform of complex numbers along any number of dimensions."""
    transform: Any = jnp.fft.fftn if forward else jnp.fft.ifftn
    for start in range(0, len(dims), _AT_ONCE):
        a = transform(a, axes=dims[start : start + _AT_ONCE], norm=_norm(mode, forward))
    return a


@compiled(1, 2, 3)
def c2c(a: Array, dims: Dims, mode: int, forward: bool) -> Array:
    return a if a.size == 0 else _rest(a, dims, mode, forward)


@compiled(1, 2, 3)
def r2c(a: Array, dims: Dims, mode: int, onesided: bool) -> Array:
    last = dims[-1]
    if a.size == 0:
        count = a.shape[last] // 2 + 1 if onesided else a.shape[last]
        shape = (*a.shape[:last], count, *a.shape[last + 1 :])
        return jnp.zeros(shape, jnp.result_type(a.dtype, jnp.complex64))
    transform: Any = jnp.fft.rfft if onesided else jnp.fft.fft
    return _rest(transform(a, axis=last, norm=_norm(mode, True)), dims[:-1], mode, True)


@compiled(1, 2, 3)
def c2r(a: Array, dims: Dims, mode: int, last_dim_size: int) -> Array:
    last = dims[-1]
    if a.size == 0:
        shape = (*a.shape[:last], last_dim_size, *a.shape[last + 1 :])
        return jnp.zeros(shape, a.real.dtype)
    half = _rest(a, dims[:-1], mode, False)
    # XLA leaves open what becomes of the imaginary part of what must be real.
    places = jnp.arange(half.shape[last]).reshape((-1,) + (1,) * (half.ndim - 1 - last))
    alone = (places == 0) | (2 * places == last_dim_size)
    half = jnp.where(alone, half.real.astype(half.dtype), half)
    return jnp.fft.irfft(half, last_dim_size, axis=last, norm=_norm(mode, False))


KERNELS: Final[dict[str, Kernel]] = {
    "_fft_c2c": c2c,
    "_fft_r2c": r2c,
    "_fft_c2r": c2r,
}
