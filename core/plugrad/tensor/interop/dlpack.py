"""DLPack: shares the memory of tensors with other libraries, and of their arrays with tensors."""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np

from plugrad.dispatch.backends.active import (
    ActiveBackend,
    active_backends,
    canonical_device,
    find_backend,
)
from plugrad.dispatch.keys import MATH_BITS, TRANSFORMS_BIT
from plugrad.dispatch.local_state import WATCH
from plugrad.tensor.aliasing.layout import _backend_of
from plugrad.tensor.base import TensorBase, needs_grad, note_read, whole_numbers, wrap
from plugrad.tensor.interop.arrays import from_host, numpy_dtype
from plugrad.tensor.levels import readable
from plugrad.tensor.math_bits import is_conj

_DLPACK_CPU: Final = 1


def dlpack(self: TensorBase, **options: Any) -> Any:
    """A DLPack capsule of the tensor's memory; BufferError if it requires grad.

    `stream`, `max_version`, `dl_device` and `copy` go to the backend's array.
    """
    if needs_grad(self):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._keyset & TRANSFORMS_BIT:
        self = readable(self)
    if self._keyset & MATH_BITS:
        bit = "conjugate" if is_conj(self) else "negative"
        raise BufferError(f"Can't export tensors with the {bit} bit set")
    if WATCH.threads > 0:
        note_read(self)
    return find_backend(self.device.type).backend.to_dlpack(self._backend_array, **options)


def dlpack_device(self: TensorBase) -> Any:
    """DLPack's device type and index."""
    if self._keyset & TRANSFORMS_BIT:
        self = readable(self)
    place = _backend_of(self).dlpack_device(self._backend_array)
    return whole_numbers(place, self._backend_array)


@final
class _CapsuleOwner:
    """Gives a bare DLPack capsule the methods that consumers need."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_DLPACK_CPU, 0)


def from_dlpack(ext_tensor: object, *, device: object = None, copy: Any = None) -> TensorBase:
    """A tensor that shares the memory of another library's array, or of a DLPack capsule.

    Args:
        ext_tensor: an object with `__dlpack__`, or a capsule of host memory.
        device: the device of the tensor; by default the memory's.
        copy: True copies, False raises instead of copying; None copies if sharing is impossible.

    Raises:
        TypeError: `ext_tensor` is neither a capsule nor has `__dlpack__`.
        BufferError: no active backend has memory of that kind, or `copy=False` is impossible.

    >>> import numpy, plugrad
    >>> plugrad.from_dlpack(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=plugrad.float64)
    """
    source: Any = ext_tensor
    if type(ext_tensor).__name__ == "PyCapsule":
        source = _CapsuleOwner(ext_tensor)
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            "from_dlpack(): expected a DLPack capsule or an object with __dlpack__, got "
            f"{type(ext_tensor).__name__}"
        )
    kind, index = source.__dlpack_device__()
    owner = _owner_of_memory(kind)
    wanted = owner.device(index) if device is None else canonical_device(device)
    target = owner if wanted.type == owner.name else find_backend(wanted.type)
    try:
        array = target.backend.from_dlpack(source, wanted.index or 0)
    except BufferError:
        if target is owner or copy is False:
            raise
        # Another library's device: through host memory.
        array = owner.backend.from_dlpack(source, index)
        return from_host(owner.backend.to_host(array), owner.backend.dtype_of(array), wanted)
    if copy is True:
        host = np.array(target.backend.to_host(array))
        return from_host(host, target.backend.dtype_of(array), wanted)
    dtype = numpy_dtype(array) if wanted.type == "cpu" else target.backend.dtype_of(array)
    return wrap(array, dtype, wanted)


def _owner_of_memory(kind: int) -> ActiveBackend:
    """The backend that memory of a DLPack device type belongs to; the host's is the CPU's."""
    if kind == _DLPACK_CPU:
        return find_backend("cpu")
    for active in active_backends():
        if active.backend.dlpack_type() == kind:
            return active
    raise BufferError(
        f"from_dlpack(): no active backend has memory of DLPack device type {kind}; active: "
        f"{', '.join([active.name for active in active_backends()]) or 'none'}. Activate the one "
        "that has, by making a tensor on its device"
    )
