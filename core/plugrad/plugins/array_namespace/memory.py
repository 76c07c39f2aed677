"""What mutable arrays need: the position of elements in memory, views that share it, and copies
that do not.

The standard has neither strides nor offsets, but libraries do: as in NumPy, as in PyTorch, or by
DLPack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad.dispatch.backends.kernel_errors import NOT_A_VIEW
from plugrad.dispatch.backends.kernel_table import kernel
from plugrad.plugins.array_namespace.family import Family, needs
from plugrad.plugins.array_namespace.linalg import Linalg
from plugrad.plugins.array_namespace.namespace import Array
from plugrad.plugins.array_namespace.views import Views
from plugrad.tensor.aliasing.memory_layout import memory_order
from plugrad.tensor.aliasing.strides import check_reach, contiguous_strides, viewed_strides

Shape = tuple[int, ...]


def strides_of(array: Array) -> Shape:
    """Strides in elements; a contiguous array's if the library does not expose them."""
    shape = tuple(array.shape)
    if 0 in shape:
        return contiguous_strides(shape)
    told = getattr(array, "stride", None)
    if callable(told):
        return tuple(told())
    steps, itemsize = getattr(array, "strides", None), getattr(array, "itemsize", 0)
    if not isinstance(steps, tuple) or not itemsize:
        host = _seen_from_host(array)
        if host is None:
            return contiguous_strides(shape)
        steps, itemsize = host.strides, host.itemsize
    found = [step // itemsize for step in steps]
    following = 1
    for dim in range(len(shape) - 1, -1, -1):
        if shape[dim] == 1 and found[dim] == 0:  # of a new dimension
            found[dim] = following
        following = shape[dim] * found[dim]
    return tuple(found)


def offset_of(array: Array) -> int:
    """Elements between the start of the memory that views share and the array's first one; 0 if the
    library does not expose it."""
    told = getattr(array, "storage_offset", None)
    if callable(told):
        return int(told())
    holder = _holder(array)
    if holder is array or not array.size:
        return 0
    start: int = array.__array_interface__["data"][0]
    return (start - int(holder.__array_interface__["data"][0])) // int(array.itemsize)


def _holder(array: Array) -> Array:
    """The array of NumPy's that a view was first taken of; any other library's as it is."""
    while True:
        # What NumPy's as_strided returns keeps an object that keeps the array.
        base = getattr(array, "base", None)
        base = base if isinstance(base, np.ndarray) else getattr(base, "base", None)
        if not isinstance(base, np.ndarray):
            return array
        array = base


def _seen_from_host(array: Array) -> np.ndarray[Any, Any] | None:
    """The same memory as a NumPy array, where it can be seen."""
    try:
        return np.from_dlpack(array)
    except Exception:  # libraries refuse in many words
        return None


def _writable(array: Array) -> Array:
    """NumPy marks some views read-only; the core decides what may be written to."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        array.flags.writeable = True
    return array


class Writing(Family):
    """Writes; views that share memory, and copies in memory of their own, whatever functions of
    the namespace give."""

    def __init__(self, namespace: Any) -> None:
        super().__init__(namespace)
        self._views = Views(namespace)
        self._linalg = Linalg(namespace)

    @kernel("copy_")
    def copy_(self, target: Array, source: Array) -> None:
        target[...] = source if source.dtype == target.dtype else self.ns.cast(source, target.dtype)

    @kernel("view")
    @needs("reshape")
    def view(self, a: Array, size: Shape) -> Array:
        """Namespaces copy if there is no such view."""
        if 0 not in size and viewed_strides(tuple(a.shape), strides_of(a), size) is None:
            raise RuntimeError(NOT_A_VIEW)
        return self.xp.reshape(a, size)

    @kernel("expand")
    @needs("broadcast_to")
    def expand(self, a: Array, size: Shape) -> Array:
        return _writable(self._views.expand(a, size))

    @kernel("diagonal")
    @needs("linalg.diagonal", "permute_dims")
    def diagonal(self, a: Array, offset: int, dim1: int, dim2: int) -> Array:
        return _writable(self._linalg.diagonal(a, offset, dim1, dim2))

    @kernel("_as_strided")
    def as_strided(self, a: Array, size: Shape, stride: Shape, storage_offset: int) -> Array:
        """PyTorch has it, NumPy something close, the standard does not."""
        if self.ns.has("as_strided"):
            return self.xp.as_strided(a, size, stride, storage_offset)
        if not isinstance(a, np.ndarray):
            return NotImplemented
        if 0 in size:
            return np.empty(size, a.dtype)
        holder = _holder(a)
        memory = holder.ravel(order="K")
        if not np.may_share_memory(memory, holder):
            return NotImplemented
        memory = memory.view(a.dtype)
        check_reach(size, stride, storage_offset, a.itemsize, memory.nbytes)
        steps = tuple(step * a.itemsize for step in stride)
        return np.lib.stride_tricks.as_strided(memory[storage_offset:], size, steps)

    @kernel("flip")
    @needs("flip", "empty")
    def flip(self, a: Array, dims: Shape) -> Array:
        """A copy: tensors have no negative strides."""
        return self._copy(self._views.flip(a, dims))

    @kernel("clone")
    @needs("empty", "permute_dims")
    def clone(self, a: Array, keep_strides: bool) -> Array:
        strides = strides_of(a)
        if not keep_strides or strides == contiguous_strides(tuple(a.shape)):
            return self._copy(a)
        order = memory_order(tuple(a.shape), strides)
        back = sorted(range(a.ndim), key=order.__getitem__)
        return self.xp.permute_dims(self._copy(self.xp.permute_dims(a, order)), tuple(back))

    def _copy(self, a: Array) -> Array:
        """A contiguous copy; in some libraries `asarray` keeps the strides of its argument."""
        made = self.xp.empty(a.shape, dtype=a.dtype, device=a.device)
        made[...] = a
        return made

    @kernel("_view_dtype")
    def view_dtype(self, a: Array, dtype: Any) -> Array:
        """PyTorch and NumPy have it as `view`, the standard does not."""
        if isinstance(a, np.ndarray) or self.ns.has("view_as_real"):
            return a.view(dtype)
        return NotImplemented

    @kernel("view_as_real")
    def view_as_real(self, a: Array) -> Array:
        """PyTorch has it, NumPy has a view by dtype, the standard does not."""
        if self.ns.has("view_as_real"):
            return self.xp.view_as_real(a)
        if not isinstance(a, np.ndarray):
            return NotImplemented
        return a[..., None].view(a.real.dtype)
