"""How tensors go through the queues and pipes of multiprocessing: by their shared memory."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

import plugrad
from plugrad import Tensor
from plugrad_nn.multiprocessing.descriptors import passed
from plugrad_nn.multiprocessing.memory import CAN_SHARE, SharedMemory, memory_of
from plugrad_nn.multiprocessing.sharing import host_array, placed, share_memory
from plugrad_nn.nn.parameter import Buffer, Parameter

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]

NON_LEAF: Final = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
    "support crossing process boundaries.  If you just want to transfer the data, call detach() "
    "on the tensor before serializing (e.g., putting it on the queue)."
)


def check_can_leave(tensor: Tensor) -> None:
    """Raise RuntimeError if another process would also need the tensor's graph."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(NON_LEAF)


def lies_on_host(tensor: Tensor) -> bool:
    """Whether a NumPy array holds the elements directly; other tensors are sent by value."""
    return tensor.device.type == "cpu" and not tensor.is_conj() and not tensor.is_neg()


def as_class(cls: type[Tensor], tensor: Tensor, requires_grad: bool) -> Tensor:
    """A tensor that arrived, as an instance of the class that was sent."""
    if cls is Parameter:
        return Parameter(tensor, requires_grad)
    if cls is Buffer:
        tensor = Buffer(tensor)
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


def reduce_tensor(tensor: Tensor) -> Reduced | Any:
    """Move a tensor to shared memory and return its location there.

    Raises:
        RuntimeError: it requires grad and is not a leaf.
    """
    check_can_leave(tensor)
    if not CAN_SHARE or not lies_on_host(tensor):
        return tensor.__reduce_ex__(4)
    array = host_array(share_memory(tensor))
    memory = memory_of(array)
    assert memory is not None  # it was moved there
    start = memory.bytes().__array_interface__["data"][0]
    offset = array.__array_interface__["data"][0] - start if array.size else 0
    place = (array.shape, array.strides, offset)
    return rebuild_tensor, (type(tensor), memory, tensor.dtype, place, tensor.requires_grad)


def rebuild_tensor(
    cls: type[Tensor],
    memory: SharedMemory,
    dtype: plugrad.dtype,
    place: tuple[tuple[int, ...], tuple[int, ...], int],
    requires_grad: bool,
) -> Tensor:
    """The tensor in the process that receives it; both have the same memory."""
    shape, strides, offset = place
    array = placed(memory.bytes(), shape, dtype.numpy, strides, offset)
    return as_class(cls, plugrad.from_numpy(array), requires_grad)


def reduce_memory(memory: SharedMemory) -> Reduced:
    """Pass memory on by its path, or by its descriptor."""
    if memory.path:
        memory.retain()  # for the receiver
        return SharedMemory.from_path, (memory.path, memory.nbytes)
    return rebuild_memory, (passed(memory.descriptor), memory.nbytes)


def rebuild_memory(sent: Any, size: int) -> SharedMemory:
    """Memory for a descriptor from another process."""
    return SharedMemory.from_descriptor(sent.detach(), size)


def init_reductions() -> None:
    """Have multiprocessing send tensors by their shared memory. Importing the module calls it.

    >>> import plugrad.multiprocessing as mp
    >>> mp.init_reductions()
    """
    for cls in (Tensor, Parameter, Buffer):
        ForkingPickler.register(cls, reduce_tensor)
    ForkingPickler.register(SharedMemory, reduce_memory)
