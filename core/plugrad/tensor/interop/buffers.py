"""`frombuffer`: tensors on the memory of other objects."""

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad.device import CPU
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dtype import FLOATING
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.arguments import dtype_argument
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad import Tensor


@explains
def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector on the memory of an object that has Python's buffer protocol.

    Args:
        dtype: of the elements in the buffer.
        count: how many elements; by default all that there are.
        offset: how many bytes are skipped.

    Raises:
        ValueError: the object is not a buffer, or too short for this, or no elements are left.
        RuntimeError: `requires_grad` with a dtype that has no gradients.

    >>> import plugrad
    >>> plugrad.frombuffer(bytearray([1, 0, 2, 0]), dtype=plugrad.int16)
    tensor([1, 2], dtype=plugrad.int16)
    """
    kind = dtype_argument(dtype, "frombuffer", "dtype", 2)
    if requires_grad and kind.category < FLOATING:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length = view.nbytes
    size = kind.itemsize
    if length <= 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size != 0:
            raise ValueError(
                f"buffer length ({length} bytes) after offset ({offset} bytes) must be a multiple "
                f"of element size ({size})"
            )
        count = (length - offset) // size
    elif math.prod((count, size)) > length - offset:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    if view.readonly:
        warn_at_caller(
            "The given buffer is not writable, and plugrad does not support non-writable tensors: "
            "writing to this tensor will fail. You may want to copy the buffer to protect its data "
            "or make it writable before converting it to a tensor."
        )
    array = np.frombuffer(view, kind.numpy, count, offset)
    made: Any = from_host(array, kind, CPU)
    if requires_grad:
        made.requires_grad_()
    tensor: Tensor = made
    return tensor
