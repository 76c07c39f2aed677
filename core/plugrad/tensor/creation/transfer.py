"""Copies between devices: within a backend, by DLPack if two backends share a kind of memory, or
through the host. Also page-locked host memory, with which copies overlap with computation.
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np

from plugrad.device import CPU, Device, accelerator_type, as_device
from plugrad.dispatch.backends.active import ActiveBackend, active_backends, find_backend
from plugrad.dispatch.local_state import WATCH
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, note_read, sizes_of, wrap
from plugrad.tensor.calls.promotion import cast_array
from plugrad.tensor.math_bits import resolved

_HOST_MEMORY: Final = 1


@final
class _Exporter:
    """Gives an array of a backend the methods that consumers of DLPack need."""

    def __init__(self, active: ActiveBackend, array: Any) -> None:
        self.active = active
        self.array: Any = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.active.backend.to_dlpack(self.array, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.active.backend.dlpack_device(self.array)


def moved_array(tensor: TensorBase, device: Device, non_blocking: bool, own: bool) -> Any:
    """A tensor's elements in an array on another device than its own.

    Args:
        non_blocking: may return before the copy has finished, if the backends can.
        own: the copy must have its own memory; otherwise a backend on the host may share it.

    Raises:
        TypeError: the device has no such dtype.
        NotImplementedError: the tensor has no elements, being on the device `meta`.
    """
    source = find_backend(tensor.device.type)
    target = find_backend(device.type)
    index = device.index or 0
    array = resolved(tensor)._backend_array
    if source is target:
        return target.copy_to_device(array, index, non_blocking)
    if WATCH.threads > 0:
        note_read(tensor)
    if device.type == "meta":
        if tensor.device is not CPU:
            # Sizes and dtype are all that is requested: no device has to be waited for.
            array = np.empty(sizes_of(tensor), tensor.dtype.numpy)
        return target.from_host(array, index)
    shared = _through_dlpack(source, target, array, tensor.dtype, tensor.device.index or 0, index)
    if shared is not None:
        return shared
    if not own:
        return target.from_host(source.to_host(array), index)
    if device is CPU:
        return target.from_host(source.copy_to_host(array, non_blocking), index)
    return target.copy_from_host(source.to_host(array), index, non_blocking)


def _through_dlpack(
    source: ActiveBackend, target: ActiveBackend, array: Any, dtype: DType, here: int, index: int
) -> Any:
    """The array for the target's backend, copied on its device; None if they share no memory.

    Memory of the host is left to NumPy, which costs no more. The array passed over has no other
    references: a write to one tensor must not change the other.
    """
    kind = target.backend.dlpack_type()
    if kind < 0 or kind == _HOST_MEMORY:
        return None
    try:
        place = source.backend.dlpack_device(array)
        if place[0] != kind:
            return None
        if source.backend.mutable:
            array = cast_array(array, source.name, dtype, here)
        found = target.backend.from_dlpack(_Exporter(source, array), place[1])
    except BufferError:
        return None
    if place[1] != index:
        return target.copy_to_device(found, index, False)
    if target.backend.mutable and not source.backend.mutable:
        return cast_array(found, target.name, dtype, index)
    return found


def cast_first(tensor: TensorBase, dtype: DType, device: Device) -> bool:
    """Whether to cast before a move to another device and not after it: if that moves fewer bytes.

    A device that lacks a dtype decides: tensors are neither cast to the dtype there nor moved there
    with it.
    """
    first = dtype.itemsize <= tensor.dtype.itemsize
    if first:
        return _has(tensor.device, dtype) or not _has(device, tensor.dtype)
    return not _has(device, tensor.dtype)


def _has(device: Device, dtype: DType) -> bool:
    try:
        find_backend(device.type).backend.native_dtype(dtype)
    except TypeError:
        return False
    return True


def moved(tensor: TensorBase, device: Device, non_blocking: bool) -> TensorBase:
    """A copy of a tensor on another device, below autograd; on its own one, a plain copy."""
    if tensor.device is device:
        copied = cast_array(
            resolved(tensor)._backend_array, device.type, tensor.dtype, device.index or 0
        )
        return wrap(copied, tensor.dtype, device)
    return wrap(moved_array(tensor, device, non_blocking, True), tensor.dtype, device)


def pin_memory(tensor: TensorBase, device: object) -> TensorBase:
    """The tensor in page-locked host memory; itself if it is in such memory already.

    Args:
        device: the device that will read and write it, by default the accelerator.

    Raises:
        RuntimeError: the tensor is not on the CPU; or there is no device that pins memory.
    """
    if is_pinned(tensor):
        return tensor
    if tensor.device is not CPU:
        raise RuntimeError(
            f"cannot pin '{tensor.device.type}.{tensor.dtype.scalar_name}Tensor' only dense CPU "
            "tensors can be pinned"
        )
    wanted = accelerator_type() if device is None else as_device(device).type
    pinned = find_backend(wanted).backend.pin(resolved(tensor)._backend_array)
    return wrap(find_backend(CPU.type).from_host(pinned, 0), tensor.dtype, CPU)


def is_pinned(tensor: TensorBase) -> bool:
    """Whether a tensor is in page-locked host memory of any active backend."""
    if tensor.device is not CPU:
        return False
    for active in active_backends():  # noqa: SIM110  # as in all compiled code, no generator
        if active.backend.is_pinned(tensor._backend_array):
            return True
    return False
