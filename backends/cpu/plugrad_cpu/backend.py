"""The backend for `device="cpu"`: NumPy arrays, computed on the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from plugrad.dtype import DType
from plugrad.plugins import Backend, InContext, package_kernels
from plugrad_cpu.facts import describe_host
from plugrad_cpu.features import usable_features
from plugrad_cpu.generator import CpuGenerator
from plugrad_cpu.memory import element_offset, element_strides
from plugrad_cpu.numerics.floating_errors import SILENT
from plugrad_cpu.numerics.threads import allow_threads, thread_count

Array = np.ndarray[Any, Any]

_VIEWS: Final = "plugrad_cpu.kernels.views"
_MAKE_ARRAYS: Final = ("empty", "zeros", "ones")


def _needs_context(name: str, kernel: Callable[..., Any]) -> bool:
    """Whether NumPy may warn in it: it computes with numbers."""
    if getattr(kernel, "__module__", None) == _VIEWS:
        return name.endswith("_backward")
    return name not in _MAKE_ARRAYS


class CpuBackend(Backend):
    """NumPy on the host. Arrays are mutable, and views share memory."""

    def __init__(self) -> None:
        super().__init__("cpu", array_type=np.ndarray, key_name="CPU")

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        """Every kernel of `plugrad_cpu.kernels`; NumPy raises nothing in them."""
        return {
            name: InContext(kernel, SILENT) if _needs_context(name, kernel) else kernel
            for name, kernel in package_kernels("plugrad_cpu.kernels").items()
        }

    def describe(self) -> Mapping[str, str]:
        """NumPy, the BLAS of its matrix products, and the threads that one may use."""
        return describe_host()

    def features(self, capability: str) -> Mapping[str, bool]:
        """The processor's, by NumPy's names in lower case: `plugrad_cpu.features`."""
        return usable_features(capability)

    def is_contiguous(self, array: Array) -> bool:
        return array.flags.c_contiguous

    def num_threads(self) -> int:
        return thread_count()

    def set_num_threads(self, count: int) -> None:
        allow_threads(count)

    def as_array(self, value: Any) -> Array:
        """NumPy functions return scalars where others return 0-dim arrays.

        Raises:
            TypeError: it is not an object that NumPy has numbers in.
        """
        if isinstance(value, np.generic):
            return np.asarray(value)
        try:
            found = np.asarray(value)
        except ValueError:  # lists of different lengths
            found = np.asarray(None)
        if found.dtype.kind in "OSUMm":
            raise TypeError(f"expected numpy.ndarray, got {type(value).__name__}")
        return found

    def from_host(self, array: Array, index: int) -> Array:
        """Host memory is this backend's memory: the array itself."""
        return array

    def to_host(self, array: Array) -> Array:
        return array

    def arena(
        self, size: int, parts: list[tuple[int, tuple[int, ...], tuple[int, ...], Any]]
    ) -> list[Array]:
        """Arrays in one block of bytes that starts at a cache line."""
        memory = np.empty(size + 64, np.uint8)
        start = -memory.ctypes.data % 64
        return [
            np.ndarray(shape, native, memory, start + offset, strides)
            for offset, shape, strides, native in parts
        ]

    def native_dtype(self, dtype: DType) -> np.dtype[Any]:
        native: np.dtype[Any] = dtype.numpy
        return native

    def strides(self, array: Array) -> tuple[int, ...]:
        return element_strides(array)

    def storage_offset(self, array: Array) -> int:
        return element_offset(array)

    def dlpack_type(self) -> int:
        """kDLCPU."""
        return 1

    def from_dlpack(self, source: Any, index: int) -> Array:
        if source.__dlpack_device__()[0] != self.dlpack_type():
            raise BufferError(
                f"the memory is not on the host; its DLPack device is {source.__dlpack_device__()}"
            )
        return np.from_dlpack(source)

    def make_generator(self, index: int) -> CpuGenerator:
        return CpuGenerator()
