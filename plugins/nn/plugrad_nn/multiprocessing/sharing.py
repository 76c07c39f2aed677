"""Tensors in shared memory: moved there in place, with all that share their memory."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import plugrad
from plugrad import Tensor
from plugrad_nn.multiprocessing.memory import (
    CAN_PASS_DESCRIPTORS,
    CAN_SHARE,
    Bytes,
    SharedMemory,
    memory_of,
    owner,
)

_STRATEGIES: Final = frozenset(
    {"file_descriptor", "file_system"} if CAN_PASS_DESCRIPTORS else {"file_system"}
)
_strategy = "file_descriptor" if CAN_PASS_DESCRIPTORS else "file_system"

# A tensor's array has one holder, `array` below another, and its argument of getrefcount a third.
_UNSHARED: Final = 3


def get_all_sharing_strategies() -> set[str]:
    """The strategies for passing memory to other processes.

    >>> import plugrad.multiprocessing as mp
    >>> "file_system" in mp.get_all_sharing_strategies()
    True
    """
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The strategy for passing memory to other processes.

    >>> import plugrad.multiprocessing as mp
    >>> mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    True
    """
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory is passed to other processes from now on.

    Args:
        new_strategy: ``"file_descriptor"`` uses a descriptor for each shared tensor, and leaves no
            files. ``"file_system"`` uses a file for each, which remains if all processes that use
            it are killed.

    Raises:
        AssertionError: this system has no such strategy.

    >>> import plugrad.multiprocessing as mp
    >>> mp.set_sharing_strategy(mp.get_sharing_strategy())
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {set(_STRATEGIES)}"
        )
    _strategy = new_strategy


def new_memory(size: int) -> SharedMemory:
    """Memory for this number of bytes, as the strategy requires."""
    return (SharedMemory.named if _strategy == "file_system" else SharedMemory.anonymous)(size)


def is_shared(tensor: Tensor) -> bool:
    """Whether other processes can see a tensor's memory.

    Args:
        tensor: of any shape and dtype.

    >>> import plugrad
    >>> plugrad.ones(2).is_shared(), plugrad.ones(2).share_memory_().is_shared()
    (False, True)
    """
    if tensor.is_cuda:
        return True
    return _on_host(tensor) and memory_of(host_array(tensor)) is not None


def share_memory(tensor: Tensor) -> Tensor:
    """Move a tensor's memory to where other processes see it; views of it move along.

    Args:
        tensor: of any shape and dtype.

    Raises:
        NotImplementedError: its device's arrays cannot live in shared memory, or the system is not
            Unix.

    >>> import plugrad
    >>> x = plugrad.zeros(2, 2)
    >>> row = x[0]
    >>> row.share_memory_() is row
    True
    >>> x += 1
    >>> row
    tensor([1., 1.])
    """
    if tensor.is_cuda:
        return tensor
    if not _on_host(tensor):
        raise NotImplementedError(
            f"share_memory_(): arrays of device {str(tensor.device)!r} cannot live in memory that "
            "other processes see; move the tensor to the CPU first"
        )
    if not CAN_SHARE:
        raise NotImplementedError(
            "share_memory_(): plugrad shares memory with other processes on Unix only; here "
            "tensors are sent to them by value"
        )
    root = owner(host_array(tensor))
    memory = memory_of(root)
    if memory is not None and memory.can_be_passed:
        return tensor
    del memory
    if tensor._base is None and sys.getrefcount(root) <= _UNSHARED:
        _move([tensor], root)
    else:
        _move([tensor, *_others(tensor, root)], root)
    return tensor


def host_array(tensor: Tensor) -> NDArray[Any]:
    """The array of a tensor on the host, which shares the tensor's memory."""
    array: NDArray[Any] = tensor.detach().numpy()
    return array


def _on_host(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and not tensor.is_conj() and not tensor.is_neg()


def _others(tensor: Tensor, root: NDArray[Any]) -> Iterable[Tensor]:
    """All other tensors in the memory of `root`."""
    for found in gc.get_objects():
        # Asking an object for its class may run its own code.
        is_other = issubclass(type(found), Tensor) and found is not tensor and _on_host(found)
        if is_other and owner(host_array(found)) is root:
            yield found


def _move(tensors: list[Tensor], root: NDArray[Any]) -> None:
    """Copy the memory of `root` to where it is shared, and have the tensors there."""
    start, stop = np.lib.array_utils.byte_bounds(root)
    memory = new_memory(stop - start).bytes()
    if stop > start:
        memory[:] = _bytes_at(root, start, stop)
    moved = [_moved(host_array(tensor), memory, start) for tensor in tensors]
    for tensor, array in zip(tensors, moved, strict=True):
        tensor.data = plugrad.from_numpy(array)


def _bytes_at(root: NDArray[Any], start: int, stop: int) -> Bytes:
    """The range of memory that contains an array's elements."""
    first = root[(0,) * root.ndim + (...,)].reshape(1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (stop - start,), (1,))


def _moved(array: NDArray[Any], memory: Bytes, start: int) -> NDArray[Any]:
    offset = array.__array_interface__["data"][0] - start if array.size else 0
    return placed(memory, array.shape, array.dtype, array.strides, offset)


def placed(
    memory: Bytes,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    strides: tuple[int, ...],
    offset: int,
) -> NDArray[Any]:
    """An array in memory that has room for it; strides and offset are in bytes."""
    if 0 in shape:
        return memory[:0].view(dtype).reshape(shape)
    return np.ndarray(shape, dtype, memory, offset, strides)
