"""Gradients of Fourier transforms: the adjoint of each is another one.

Only half of the spectrum of real numbers is stored. Each of its elements stands for two, conjugates
of each other, except the first and, for an even length, the last.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING

import numpy as np

from plugrad._generated import functions as F
from plugrad.ops.on_demand.prepare.spectral import one_dim
from plugrad.tensor.base import sizes_of
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def _scaled(half: Tensor, dim: int, length: int, factor: float) -> Tensor:
    """Half of a spectrum, with a factor applied to the elements that stand for two."""
    count = length // 2 + 1
    factors = np.full(count, factor)
    factors[0] = 1
    if length % 2 == 0:
        factors[-1] = 1
    dtype = half.dtype.to_real()
    shape = [1] * len(sizes_of(half))
    shape[dim] = count
    weights = from_host(factors.astype(dtype.numpy).reshape(shape), dtype, half.device)
    return half * weights


def r2c_backward(
    grad: Tensor, dim: Sizes, normalization: int, onesided: bool, sizes: Sizes
) -> Tensor:
    if not onesided:
        return F.real(F._fft_c2c(grad, dim, normalization, False))
    last = dim[-1] % len(sizes)
    half = _scaled(grad, last, sizes[last], 0.5)
    return F._fft_c2r(half, dim, normalization, sizes[last])


def c2r_backward(grad: Tensor, dim: Sizes, normalization: int, last_dim_size: int) -> Tensor:
    half = F._fft_r2c(grad, dim, normalization, True)
    return _scaled(half, one_dim(half, dim[-1]), last_dim_size, 2.0)
