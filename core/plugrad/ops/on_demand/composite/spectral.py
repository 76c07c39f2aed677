"""The public Fourier transforms, composed of three: complex to complex, real to complex and complex
to real. A backend without these three uses the host's.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, DType, get_default_dtype
from plugrad.ops.on_demand.composite.spectra.short_time import istft as istft
from plugrad.ops.on_demand.composite.spectra.short_time import stft as stft
from plugrad.ops.on_demand.composite.spectra.windows import bartlett_window as bartlett_window
from plugrad.ops.on_demand.composite.spectra.windows import blackman_window as blackman_window
from plugrad.ops.on_demand.composite.spectra.windows import hamming_window as hamming_window
from plugrad.ops.on_demand.composite.spectra.windows import hann_window as hann_window
from plugrad.ops.on_demand.composite.spectra.windows import kaiser_window as kaiser_window
from plugrad.ops.on_demand.prepare import spectral as prepare
from plugrad.ops.on_demand.prepare.spectral import (
    check_length,
    mode_of,
    norm_of,
    one_dim,
    promoted,
    shape_and_dims,
)
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def _to_device(array: Any, dtype: DType, like: TensorBase) -> TensorBase:
    """An array of the host, which may have computed in more bits, on a tensor's device."""
    return from_host(np.asarray(array, dtype.numpy, order="C"), dtype, like.device)


def c2c_on_host(self: TensorBase, dim: Sizes, normalization: int, forward: bool) -> TensorBase:
    prepared: Any = prepare.c2c(self, dim, normalization, forward)
    _, dims, mode, _ = prepared
    transform: Any = np.fft.fftn if forward else np.fft.ifftn
    found: Any = host_array(self)
    if found.size > 0 and dim:
        found = transform(found, axes=dims, norm=norm_of(mode, forward))
    else:
        found = found.copy()
    return _to_device(found, self.dtype, self)


def r2c_on_host(self: TensorBase, dim: Sizes, normalization: int, onesided: bool) -> TensorBase:
    prepared: Any = prepare.r2c(self, dim, normalization, onesided)
    _, dims, mode, _ = prepared
    array, dtype = host_array(self), self.dtype.to_complex()
    transform: Any = np.fft.rfftn if onesided else np.fft.fftn
    if array.size > 0:
        found = transform(array, axes=dims, norm=norm_of(mode, True))
    else:
        found = np.empty(halved(sizes_of(self), dims, onesided), dtype.numpy)
    return _to_device(found, dtype, self)


def c2r_on_host(self: TensorBase, dim: Sizes, normalization: int, last_dim_size: int) -> TensorBase:
    prepared: Any = prepare.c2r(self, dim, normalization, last_dim_size)
    _, dims, mode, _ = prepared
    array, dtype = host_array(self), self.dtype.to_real()
    lengths = [*[sizes_of(self)[d] for d in dims[:-1]], last_dim_size]
    if array.size > 0:
        found = np.fft.irfftn(array, lengths, dims, norm_of(mode, False))  # type: ignore[arg-type]
    else:
        found = np.empty(doubled(sizes_of(self), dims, last_dim_size))
    return _to_device(found, dtype, self)


def halved(sizes: Sizes, dims: Sizes, onesided: bool) -> Sizes:
    """The shape that a real transform of several dimensions gives."""
    if not onesided:
        return sizes
    last = dims[-1]
    return (*sizes[:last], sizes[last] // 2 + 1, *sizes[last + 1 :])


def doubled(sizes: Sizes, dims: Sizes, last_dim_size: int) -> Sizes:
    """The shape that a transform to real numbers gives."""
    last = dims[-1]
    return (*sizes[:last], last_dim_size, *sizes[last + 1 :])


def resized(x: Tensor, dims: Sizes, lengths: Sequence[int]) -> Tensor:
    """The first elements of some dimensions; where there are too few, zeros follow them."""
    for dim, length in zip(dims, lengths, strict=True):
        sizes = sizes_of(x)
        missing = length - sizes[dim]
        if missing < 0:
            x = x.narrow(dim, 0, length)
        elif missing > 0:
            shape = (*sizes[:dim], missing, *sizes[dim + 1 :])
            x = F.cat([x, F.zeros(shape, dtype=x.dtype, device=x.device)], dim)
    return x


# One dimension.


def _of_one(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """Complex to complex; of a real tensor, the whole spectrum."""
    x = promoted(x)
    place = one_dim(x, dim)
    length = sizes_of(x)[place] if n is None else n
    check_length(length)
    x = resized(x, (place,), (length,))
    mode = mode_of(norm, forward)
    if x.dtype.is_complex:
        return F._fft_c2c(x, (place,), mode, forward)
    found = F._fft_r2c(x, (place,), mode, False)
    # For real numbers there is only the forward transform; the other one is its conjugate.
    return found if forward else found.conj()


def _real_of_one(
    name: str, x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool
) -> Tensor:
    if x.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype.scalar_name}")
    x = promoted(x)
    place = one_dim(x, dim)
    length = sizes_of(x)[place] if n is None else n
    check_length(length)
    x = resized(x, (place,), (length,))
    found = F._fft_r2c(x, (place,), mode_of(norm, forward), True)
    return found if forward else found.conj()


def _to_real_of_one(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    x = promoted(x, to_complex=True)
    place = one_dim(x, dim)
    length = 2 * (sizes_of(x)[place] - 1) if n is None else n
    check_length(length)
    x = resized(x, (place,), (length // 2 + 1,))
    mode = mode_of(norm, forward)
    return F._fft_c2r(x.conj() if forward else x, (place,), mode, length)


def fft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return _of_one(self, n, dim, norm, True)


def ifft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return _of_one(self, n, dim, norm, False)


def rfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return _real_of_one("rfft", self, n, dim, norm, True)


def ihfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return _real_of_one("ihfft", self, n, dim, norm, False)


def irfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return _to_real_of_one(self, n, dim, norm, False)


def hfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return _to_real_of_one(self, n, dim, norm, True)


# Several dimensions.


def _of_several(
    x: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None, forward: bool
) -> Tensor:
    lengths, dims = shape_and_dims(x, s, dim)
    x = resized(promoted(x, to_complex=True), dims, lengths)
    return F._fft_c2c(x, dims, mode_of(norm, forward), forward)


def _real_of_several(
    name: str, x: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None, forward: bool
) -> Tensor:
    if x.dtype.is_complex:
        if not forward:
            raise RuntimeError(
                f"Only supports floating-point dtypes, but found: {x.dtype.scalar_name}"
            )
        raise RuntimeError(
            f"{name} expects a real-valued input tensor, but got {x.dtype.scalar_name}"
        )
    lengths, dims = shape_and_dims(x, s, dim)
    _check_some(name, dims)
    x = resized(promoted(x), dims, lengths)
    found = F._fft_r2c(x, dims, mode_of(norm, forward), True)
    return found if forward else F.conj_physical(found)


def _to_real_of_several(
    name: str, x: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None, forward: bool
) -> Tensor:
    lengths, dims = shape_and_dims(x, s, dim)
    _check_some(name, dims)
    last = lengths[-1]
    if s is None or s[-1] == -1:
        last = 2 * (last - 1)
        check_length(last)
    lengths[-1] = last // 2 + 1
    x = resized(promoted(x, to_complex=True), dims, lengths)
    return F._fft_c2r(x.conj() if forward else x, dims, mode_of(norm, forward), last)


def _check_some(name: str, dims: Sizes) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def fftn(self: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None) -> Tensor:
    return _of_several(self, s, dim, norm, True)


def ifftn(self: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None) -> Tensor:
    return _of_several(self, s, dim, norm, False)


def rfftn(self: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None) -> Tensor:
    return _real_of_several("rfftn", self, s, dim, norm, True)


def ihfftn(self: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None) -> Tensor:
    return _real_of_several("ihfftn", self, s, dim, norm, False)


def irfftn(self: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None) -> Tensor:
    return _to_real_of_several("irfftn", self, s, dim, norm, False)


def hfftn(self: Tensor, s: Sizes | None, dim: Sizes | None, norm: str | None) -> Tensor:
    return _to_real_of_several("hfftn", self, s, dim, norm, True)


# Frequencies, and their order.


def _frequency_dtype(name: str, dtype: DType | None) -> DType:
    kind = get_default_dtype() if dtype is None else dtype
    if kind.category < FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if kind.is_complex:
        raise not_implemented("arange_cpu", kind)
    return kind


def fftfreq(n: int, d: float, dtype: DType | None, device: Device | None) -> Tensor:
    kind = _frequency_dtype("fftfreq", dtype)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    positive = F.arange((n + 1) // 2, dtype=kind, device=device)
    negative = F.arange(-(n // 2), 0, dtype=kind, device=device)
    return F.cat([positive, negative]) * _spacing(n, d)


def rfftfreq(n: int, d: float, dtype: DType | None, device: Device | None) -> Tensor:
    kind = _frequency_dtype("rfftfreq", dtype)
    return F.arange(int(n / 2) + 1, dtype=kind, device=device) * _spacing(n, d)


def _spacing(n: int, d: float) -> float:
    total = n * d
    return 1.0 / total if total != 0 else math.copysign(math.inf, total)


def _shift_dims(self: Tensor, dim: Sizes | None) -> tuple[Sizes, Sizes]:
    ndim = len(sizes_of(self))
    dims = tuple(range(ndim)) if dim is None else tuple([one_dim(self, d) for d in dim])
    return dims, tuple([sizes_of(self)[d] for d in dims])


def fftshift(self: Tensor, dim: Sizes | None) -> Tensor:
    dims, lengths = _shift_dims(self, dim)
    return F.roll(self, tuple([n // 2 for n in lengths]), dims)


def ifftshift(self: Tensor, dim: Sizes | None) -> Tensor:
    dims, lengths = _shift_dims(self, dim)
    return F.roll(self, tuple([(n + 1) // 2 for n in lengths]), dims)
