"""The backend for `device="cuda"`: CuPy's arrays on the GPUs that CUDA finds."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from plugrad.dtype import DType, bfloat16, float16
from plugrad.plugins import Backend, DeviceQueue
from plugrad_cuda import library, pinned, streams
from plugrad_cuda.memory import lent
from plugrad_cuda.queue import CudaQueue

Kernel = Callable[..., Any]

DTYPES: Final = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
# DLPack's numbers for memory of a GPU, and for managed memory.
_DLPACK_CUDA: Final = 2
_DLPACK_MANAGED: Final = 13


class NoArray:
    """Replaces CuPy's array class if CuPy is not installed; it has no instances."""


class CudaBackend(Backend):
    """CuPy on the GPUs that CUDA finds. Arrays are mutable, and views share memory.

    CuPy is imported when a device is first used.
    """

    def __init__(self) -> None:
        super().__init__("cuda", array_type=NoArray, key_name="CUDA")
        self._check = True

    def options(self) -> Mapping[str, object]:
        """``check``: whether kernels look for wrong indices and probabilities on the GPU, and
        raise PyTorch's errors of the CPU, for which they have to wait for it."""
        return {"check": True}

    def configure(self, options: Mapping[str, object]) -> None:
        if not isinstance(options["check"], bool):
            raise TypeError("option 'check' is true or false")
        self._check = options["check"]
        with contextlib.suppress(ImportError):  # `problem` reports it
            self.array_type = library.cupy().ndarray

    def device_count(self) -> int:
        return library.device_count()

    def current_device(self) -> int:
        index: int = library.cupy().cuda.runtime.getDevice()
        return index

    def problem(self) -> str | None:
        return library.problem()

    def describe(self) -> Mapping[str, str]:
        return library.facts()

    def kernels(self) -> Mapping[str, Kernel]:
        """CuPy's kernels, with fused ones in their place. They are also listed without a GPU, but
        not without CuPy."""
        try:
            library.cupy()
        except ImportError:
            return {}
        from plugrad_cuda import fused
        from plugrad_cuda.kernels import array_kernels
        from plugrad_cuda.kernels.namespace import CupyNamespace

        found: dict[str, Kernel] = array_kernels(CupyNamespace(check=self._check))
        found.update(fused.kernels(found, fused.CuPyRuntime(self._check)))
        if library.device_count() <= 1:
            return found
        return {name: on_device_of_arrays(kernel) for name, kernel in found.items()}

    def as_array(self, value: Any) -> Any:
        """Kernels may return NumPy's scalars."""
        if isinstance(value, (np.generic, np.ndarray, bool, int, float, complex)):
            return library.cupy().asarray(value)
        return super().as_array(value)

    def from_host(self, array: np.ndarray[Any, Any], index: int) -> Any:
        return pinned.from_host(array, index, False)

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        return pinned.to_host(array, False)

    def copy_from_host(
        self, array: np.ndarray[Any, Any], index: int, non_blocking: bool = False
    ) -> Any:
        return pinned.from_host(array, index, non_blocking)

    def copy_to_host(self, array: Any, non_blocking: bool = False) -> np.ndarray[Any, Any]:
        return pinned.to_host(array, non_blocking)

    def copy_to_device(self, array: Any, index: int, non_blocking: bool = False) -> Any:
        """By CUDA, from GPU to GPU, on the target's current stream."""
        module = library.cupy()
        with module.cuda.Device(array.device.id):
            source = module.ascontiguousarray(array)
            before = streams.current_of(array.device.id)
            ready = before.record_event()
        with module.cuda.Device(index):
            stream = streams.current_of(index)
            if stream != before:
                stream.wait_event(ready)
            target = module.empty(source.shape, source.dtype)
            target.data.copy_from_device_async(source.data, source.nbytes, stream._raw)
        if stream != before:
            self.record_stream(source, stream)
        return target

    def pin(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return pinned.pin(array)

    def is_pinned(self, array: np.ndarray[Any, Any]) -> bool:
        return pinned.is_pinned(array)

    def autocast_dtypes(self) -> tuple[DType, ...]:
        """float16, which tensor cores of all ages have, before bfloat16."""
        return float16, bfloat16

    def native_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's, which are CuPy's too; TypeError for what CUDA has no arithmetic for."""
        if dtype.name not in DTYPES:
            raise TypeError(f"{dtype} is not supported on 'cuda'")
        native: np.dtype[Any] = dtype.numpy
        return native

    def strides(self, array: Any) -> tuple[int, ...]:
        if array.size == 0:
            return super().strides(array)
        return tuple([stride // array.itemsize for stride in array.strides])

    def storage_offset(self, array: Any) -> int:
        if array.size == 0:
            return 0
        return int((array.data.ptr - array.data.mem.ptr) // array.itemsize)

    def dlpack_type(self) -> int:
        return _DLPACK_CUDA

    def from_dlpack(self, source: Any, index: int) -> Any:
        kind, number = source.__dlpack_device__()
        if kind not in (_DLPACK_CUDA, _DLPACK_MANAGED) or number != index:
            raise BufferError(f"the memory is not on cuda:{index}: DLPack device {kind, number}")
        with library.require().cuda.Device(index):
            return library.cupy().from_dlpack(source)

    def make_generator(self, index: int) -> Any:
        from plugrad_cuda.generator import CudaGenerator

        return CudaGenerator(index)

    def make_queue(self, index: int) -> DeviceQueue:
        return CudaQueue(index)

    def current_stream(self, index: int) -> Any:
        return streams.current_of(index)

    def use_stream(self, index: int, stream: Any) -> None:
        streams.use(stream)

    def record_stream(self, array: Any, stream: Any) -> None:
        lent.lend(array.data.mem, stream)

    def synchronize(self, index: int) -> None:
        library.cupy().cuda.Device(index).synchronize()


def on_device_of_arrays(kernel: Kernel) -> Kernel:
    """The kernel on the GPU of its first array, as CuPy requires."""

    @functools.wraps(kernel)
    def guarded(*args: Any) -> Any:
        cuda = library.cupy().cuda
        index = _device_of(args)
        if index < 0 or index == cuda.runtime.getDevice():
            return kernel(*args)
        with cuda.Device(index):
            return kernel(*args)

    return guarded


def _device_of(args: Any) -> int:
    """The index of the first array's GPU, in lists too; -1 without arrays."""
    for value in args:
        if isinstance(value, list):
            found = _device_of(value)
            if found >= 0:
                return found
        elif hasattr(value, "data") and hasattr(value.data, "device_id"):
            index: int = value.data.device_id
            return index
    return -1
