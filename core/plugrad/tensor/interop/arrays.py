"""Converts tensors to and from NumPy arrays, which share their memory on the host."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np

from plugrad.device import Device
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.keys import CONJUGATE_BIT, NEGATIVE_BIT, TRANSFORMS_BIT
from plugrad.dispatch.local_state import WATCH, current_state
from plugrad.dtype import ALL_DTYPES, DType
from plugrad.tensor.base import TensorBase, needs_grad, note_read, wrap
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.levels import readable
from plugrad.tensor.math_bits import is_conj, math_bits

_OF_NUMPY: Final[dict[str, DType]] = {dtype.name: dtype for dtype in ALL_DTYPES}
# By NumPy's dtype, as they were requested: NumPy computes a name on every access.
_FOUND: Final[dict[Any, DType]] = {}


def host_array(tensor: TensorBase) -> Any:
    """The elements in a NumPy array; shares memory if the backend's arrays live on the host."""
    if tensor._keyset & TRANSFORMS_BIT:
        tensor = readable(tensor)
    if WATCH.threads > 0:
        note_read(tensor)
    host = find_backend(tensor.device.type).to_host(tensor._backend_array)
    if tensor._keyset & CONJUGATE_BIT:
        host = np.conjugate(host)
    if tensor._keyset & NEGATIVE_BIT:
        host = np.negative(host)
    return host


def from_host(array: Any, dtype: DType, device: Device) -> TensorBase:
    """A tensor on `device` with the elements of a NumPy array; it may share the array's memory."""
    active = find_backend(device.type)
    return wrap(active.from_host(array, device.index or 0), dtype, device)


def numpy_dtype(array: Any) -> DType:
    """The dtype of a NumPy array that a tensor can take over.

    Raises:
        TypeError: no dtype of plugrad has this layout.
        ValueError: foreign byte order, negative strides, or strides that split an element.
    """
    dtype = array.dtype
    found = _FOUND.get(dtype)
    if found is None:
        found = _FOUND[dtype] = _of_numpy(dtype)
    for stride in array.strides:
        if stride < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().) "
            )
        if stride % dtype.itemsize != 0:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy "
                "array to reallocate the memory."
            )
    return found


def _of_numpy(dtype: Any) -> DType:
    found = _OF_NUMPY.get(dtype.name)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {dtype.type.__module__}.{dtype.type.__name__}. The "
            "only supported types are: float64, float32, float16, bfloat16, complex64, "
            "complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, float8_e4m3fn, "
            "float8_e5m2, and bool."
        )
    if not dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    return found


def share_numpy(array: Any, device: Device) -> TensorBase:
    """A tensor on `device` that shares an array's memory if its backend lives on the host."""
    dtype = numpy_dtype(array)
    if not array.flags.writeable:
        warn_at_caller(
            "The given NumPy array is not writable, and plugrad does not support non-writable "
            "tensors: writing to this tensor will fail. You may want to copy the array to protect "
            "its data or make it writable before converting it to a tensor."
        )
    return from_host(plain_view(array), dtype, device)


def plain_view(array: Any) -> Any:
    """A new plain NumPy array on the same memory. Shape and dtype of the given array can be
    assigned, which must not change a tensor."""
    base: Any = np.ndarray
    return array.view(base)


def to_numpy(self: TensorBase, *, force: bool = False) -> Any:
    """The tensor as a NumPy array; on the host it shares the tensor's memory.

    Args:
        force: also take a tensor that requires grad, or lives on another device.

    Raises:
        RuntimeError: the tensor requires grad and grad mode is on.
        TypeError: the tensor lives on another device.
    """
    if force:
        return plain_view(host_array(self))
    if needs_grad(self) and current_state().grad_enabled:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if math_bits(self):
        _refuse_bits(self)
    if self.device.type != "cpu":
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first."
        )
    return plain_view(host_array(self))


def _refuse_bits(tensor: TensorBase) -> NoReturn:
    """NumPy has no lazy conjugation."""
    bit, name = ("conjugate", "conj") if is_conj(tensor) else ("negative", "neg")
    raise RuntimeError(
        f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{name}().numpy() "
        "instead."
    )


def array(self: TensorBase, dtype: object = None, copy: bool | None = None) -> Any:
    """`numpy.asarray(tensor)`; a copy only if the dtype differs or `copy` is true."""
    host = to_numpy(self)
    if dtype is None and copy is None:
        return host
    as_numpy: Any = np.array
    return as_numpy(host, dtype=dtype, copy=copy)


def array_wrap(
    self: TensorBase, array: Any, context: object = None, return_scalar: bool = False
) -> Any:
    """Make the result of a NumPy function on a tensor a tensor again."""
    if not isinstance(array, (np.ndarray, np.generic, int, float, complex)):
        raise TypeError(
            "Tensor.__array_wrap__(): argument 'array' (position 1) must be numpy.ndarray, not "
            f"{type_name(array)}"
        )
    return share_numpy(np.asarray(array), self.device)


def from_numpy(ndarray: object) -> TensorBase:
    """A tensor on the CPU that shares a NumPy array's memory.

    Raises:
        TypeError: `ndarray` is not a NumPy array, or its element type is not supported.
        ValueError: negative strides, or foreign byte order.

    >>> import numpy, plugrad
    >>> array = numpy.zeros(2)
    >>> tensor = plugrad.from_numpy(array)
    >>> array[0] = 5
    >>> tensor
    tensor([5., 0.], dtype=plugrad.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        module = getattr(type(ndarray), "__module__", "builtins")
        name = type(ndarray).__name__
        shown = name if module == "builtins" else f"{module}.{name}"
        raise TypeError(f"expected np.ndarray (got {shown})")
    return share_numpy(ndarray, find_backend("cpu").device(None))
