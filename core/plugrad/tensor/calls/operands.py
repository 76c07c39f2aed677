"""The arrays of an operator's tensors: in one dtype, on one device."""

from __future__ import annotations

from typing import Any

from plugrad.device import Device
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import cast_array, to_dtype
from plugrad.tensor.creation.transfer import moved_array


def device_mismatch(a: Device, b: Device) -> RuntimeError:
    """PyTorch's error for operands of an elementwise operator. Names the CPU second.."""
    if a.is_host and not b.is_host:
        a, b = b, a
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{a} and {b}!"
    )


def array_for(tensor: TensorBase, dtype: DType, device: Device) -> Any:
    """A tensor's array in another dtype, and on another device if it has but one element there."""
    if tensor.device is not device:
        # Cast before the move: the device may not have the former dtype.
        return moved_array(to_dtype(tensor, dtype), device, False, False)
    if tensor.dtype is not dtype:
        return cast_array(tensor._backend_array, device.type, dtype, device.index or 0)
    return tensor._backend_array
