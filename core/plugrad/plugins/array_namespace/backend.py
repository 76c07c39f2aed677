"""A backend from any namespace of the Python Array API standard."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.kernel_table import marked_kernels
from plugrad.dtype import DType
from plugrad.plugins.array_namespace import host
from plugrad.plugins.array_namespace.creation import Creation
from plugrad.plugins.array_namespace.elementwise import Elementwise
from plugrad.plugins.array_namespace.family import Family, Kernel
from plugrad.plugins.array_namespace.indexing import Indexing, Sorting, Strides
from plugrad.plugins.array_namespace.linalg import Linalg
from plugrad.plugins.array_namespace.memory import Writing, offset_of, strides_of
from plugrad.plugins.array_namespace.namespace import Array, Namespace
from plugrad.plugins.array_namespace.reductions import Reductions
from plugrad.plugins.array_namespace.views import Views

FAMILIES: tuple[type[Family], ...] = (
    Elementwise,
    Reductions,
    Linalg,
    Views,
    Creation,
    Indexing,
    Sorting,
)


class ArrayNamespaceBackend(Backend):
    """A backend with kernels from functions of the Array API standard, 2023.12 or later.

    It has a kernel for each operator for which the namespace has the functions. The core decomposes
    all other operators into these. A subclass adds or replaces kernels by methods that are marked
    with `kernel`.

    Args:
        xp: the namespace, such as ``array_api_strict``, ``numpy`` or ``jax.numpy``.
        name: the device type, by default the last part of the namespace's name.
        key_name: name of the dispatch key, by default the name with a capital.
        mutable: whether ``array[...] = other`` writes, and reshaped, permuted, sliced and
            broadcast arrays share memory, as PyTorch's views do. The standard promises neither,
            so by default arrays are never written to: in-place operators put a new array into
            the tensor.
        devices: the namespace's devices to use, by default its default one and all others with the
            same dtypes, except "meta"; ``name:1`` is the second of them.
        dtypes: names of the dtypes to use, by default all that it has on the first device. Dtypes
            outside the standard, such as ``"bfloat16"``, must be named.
        kernels: kernels to use in place of the derived ones, or in addition.

    Raises:
        TypeError: `xp` is not a namespace of the standard, or follows a version before 2023.12.

    >>> import numpy
    >>> from plugrad.plugins import Backend
    >>> backend = Backend.from_array_namespace(numpy, "standard")
    >>> backend.name, backend.mutable, "exp" in backend.kernels()
    ('standard', False, True)
    """

    def __init__(
        self,
        xp: Any,
        name: str | None = None,
        *,
        key_name: str | None = None,
        mutable: bool = False,
        devices: Sequence[Any] | None = None,
        dtypes: Sequence[str] | None = None,
        kernels: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.namespace = Namespace(xp, devices=devices, dtypes=dtypes)
        super().__init__(
            name or self.namespace.name.rpartition(".")[2],
            array_type=self.namespace.array_type,
            key_name=key_name,
            mutable=mutable,
        )
        self._own_kernels = dict(kernels or {})

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        """Those that follow from the namespace's functions, and those given."""
        found: dict[str, Kernel] = {}
        for family in (*FAMILIES, Writing if self.mutable else Strides):
            for name, kernel in family(self.namespace).kernels().items():
                found[name] = self._refusing(name, kernel)
        return found | marked_kernels(self) | self._own_kernels

    def _refusing(self, name: str, kernel: Kernel) -> Kernel:
        """The kernel, which refuses a dtype in PyTorch's words, and divides by zero in silence.

        Namespaces raise TypeError for dtypes that a function is not defined for. NumPy, with which
        some of them compute, has warnings where the standard has inf and nan.
        """

        @functools.wraps(kernel)
        def refusing(*args: Any) -> Any:
            try:
                with np.errstate(all="ignore"):
                    return kernel(*args)
            except TypeError as error:
                for value in args:
                    if type(value) is self.array_type:
                        operator, dtype = name.partition(".")[0], self.namespace.dtype(value)
                        raise NotImplementedError(
                            f"\"{operator}\" not implemented for '{dtype.scalar_name}': {error}"
                        ) from error
                raise

        return refusing

    def capabilities(self) -> frozenset[str]:
        """Memory has a layout where arrays are written to."""
        found = super().capabilities()
        return found if self.mutable else found - {"strides"}

    def device_count(self) -> int:
        return len(self.namespace.devices)

    def as_array(self, value: Any) -> Array:
        """Some namespaces return scalars where the standard has 0-dim arrays."""
        return self.namespace.xp.asarray(value)

    def native_dtype(self, dtype: DType) -> Any:
        """The namespace's dtype; TypeError names those that it has."""
        found = self.namespace.native(dtype)
        if found is None:
            raise host.missing_dtype(self.namespace, dtype.name)
        return found

    def dtype_of(self, array: Array) -> DType:
        return self.namespace.dtype(array)

    def strides(self, array: Array) -> tuple[int, ...]:
        """Strides in elements, as the library reports them; by DLPack if it does not."""
        return strides_of(array) if self.mutable else super().strides(array)

    def storage_offset(self, array: Array) -> int:
        """The position of the first element in memory, if the library exposes it."""
        return offset_of(array) if self.mutable else 0

    def from_host(self, array: np.ndarray[Any, Any], index: int) -> Array:
        """A copy on device `index`; TypeError for a dtype that the namespace lacks."""
        return host.from_host(self.namespace, array, self.namespace.devices[index])

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        return host.to_host(self.namespace, array)

    def copy_from_host(
        self, array: np.ndarray[Any, Any], index: int, non_blocking: bool = False
    ) -> Array:
        """`from_host`, which copies."""
        return self.from_host(array, index)

    def copy_to_host(self, array: Array, non_blocking: bool = False) -> np.ndarray[Any, Any]:
        """`to_host`, which copies."""
        return self.to_host(array)

    def copy_to_device(self, array: Array, index: int, non_blocking: bool = False) -> Array:
        """The standard's `to_device`; `asarray` for arrays of a library that lacks the method, and
        has a namespace that was put around it."""
        device = self.namespace.devices[index]
        move = getattr(array, "to_device", None)
        if move is None:
            return self.namespace.xp.asarray(array, device=device, copy=True)
        return move(device)

    def from_dlpack(self, source: Any, index: int) -> Array:
        """An array of device `index` with the memory of an object with ``__dlpack__``.

        Raises:
            BufferError: the namespace cannot share it.
        """
        device = self.namespace.devices[index]
        try:
            return self.namespace.xp.from_dlpack(source, device=device)
        except Exception as error:
            raise BufferError(f"{self.namespace.name}: {type(error).__name__}: {error}") from error
