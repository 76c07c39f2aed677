"""Windows of signals under their older names. The numbers come from the host, in float64."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any

import numpy as np

from plugrad.device import Device
from plugrad.dispatch.backends.active import canonical_device
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, DType, float64, get_default_dtype
from plugrad.tensor.base import TensorBase
from plugrad.tensor.creation.allocation import check_memory
from plugrad.tensor.interop.arrays import from_host


def _window(
    name: str,
    length: int,
    periodic: bool,
    shape: Any,
    dtype: DType | None,
    device: Device | None,
) -> TensorBase:
    """`shape(t)` for `length` numbers t from 0 to 1; of a periodic window 1 is left out."""
    kind = get_default_dtype() if dtype is None else dtype
    if kind.category < FLOATING:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind}")
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length > 1 and kind.is_complex:
        raise not_implemented("arange_cpu", kind)
    check_memory(length * float64.itemsize)
    if length <= 1:
        numbers: Any = np.ones(length)
    else:
        numbers = shape(np.arange(length) / (length if periodic else length - 1))
    return from_host(numbers.astype(kind.numpy), kind, canonical_device(device))


def bartlett(t: Any) -> Any:
    return 1 - np.abs(2 * t - 1)


def blackman(t: Any) -> Any:
    return 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)


def hamming(alpha: float, beta: float) -> Any:
    return lambda t: alpha - beta * np.cos(2 * np.pi * t)


def kaiser(beta: float) -> Any:
    return lambda t: np.i0(beta * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(beta)


def bartlett_window(
    window_length: int, periodic: bool, dtype: DType | None, device: Device | None
) -> TensorBase:
    return _window("bartlett_window", window_length, periodic, bartlett, dtype, device)


def blackman_window(
    window_length: int, periodic: bool, dtype: DType | None, device: Device | None
) -> TensorBase:
    return _window("blackman_window", window_length, periodic, blackman, dtype, device)


def hamming_window(
    window_length: int,
    periodic: bool,
    alpha: float,
    beta: float,
    dtype: DType | None,
    device: Device | None,
) -> TensorBase:
    shape = hamming(alpha, beta)
    return _window("hamming_window", window_length, periodic, shape, dtype, device)


def hann_window(
    window_length: int, periodic: bool, dtype: DType | None, device: Device | None
) -> TensorBase:
    return _window("hann_window", window_length, periodic, hamming(0.5, 0.5), dtype, device)


def kaiser_window(
    window_length: int, periodic: bool, beta: float, dtype: DType | None, device: Device | None
) -> TensorBase:
    return _window("kaiser_window", window_length, periodic, kaiser(beta), dtype, device)
