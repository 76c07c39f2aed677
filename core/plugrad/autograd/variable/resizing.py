"""`resize_` and `set_`: give a tensor another shape or other memory, without recording it."""

from __future__ import annotations

import math
from typing import Any

from plugrad._generated import functions as F
from plugrad._generated.calls import call_as_strided
from plugrad.dispatch.local_state import current_state
from plugrad.graph.history import check_inplace
from plugrad.memory_format import MemoryFormat, check_rank, preserve_format
from plugrad.tensor.aliasing.functionalize import take_over
from plugrad.tensor.aliasing.layout import storage_offset, strides
from plugrad.tensor.aliasing.memory_layout import strides_in_order
from plugrad.tensor.base import (
    Storage,
    TensorBase,
    bump_version,
    is_inference,
    needs_grad,
    sizes_of,
    version_of,
)
from plugrad.tensor.dual import own_tangent
from plugrad.tensor.math_bits import as_stored


def resize_(
    tensor: TensorBase, sizes: tuple[int, ...], memory_format: MemoryFormat | None = None
) -> None:
    """Change a tensor's shape, in row-major order; new elements are not initialised.

    Nothing happens, and no write is counted, if it has the shape already.

    Args:
        memory_format: the order of the elements in memory; if given, it is applied even then.

    Raises:
        RuntimeError: it requires grad, and is not an inference tensor; a size is negative; the
            format does not fit tensors of that rank.
    """
    if needs_grad(tensor) and not is_inference(tensor):
        raise RuntimeError("cannot resize variables that require grad")
    if own_tangent(tensor) is not None:
        raise RuntimeError("cannot resize variables that has a forward grad")
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}"
        )
    if memory_format is preserve_format:
        raise RuntimeError(f"Unsupported memory format{memory_format.cpp_name}")
    if memory_format is not None:
        check_rank(memory_format, len(sizes))
    same = sizes == sizes_of(tensor)
    if same and memory_format is None:
        return
    order = () if memory_format is None else memory_format.order
    steps = strides_in_order(sizes, order or tuple(range(len(sizes))))
    if not same:
        bump_version(tensor)
    elif strides(tensor) == steps:
        return
    count = math.prod(sizes)
    held = _reach(tensor)
    public: Any = as_stored(tensor)
    if 0 in sizes or count <= held:
        made = call_as_strided(public, sizes, steps, storage_offset(tensor))
        take_over(tensor, made)
        return
    grown: Any = F.empty(count, dtype=tensor.dtype, device=tensor.device)
    if held:
        grown[:held] = call_as_strided(public, (held,), (1,), storage_offset(tensor))
    _move_to(tensor, call_as_strided(grown, sizes, steps, 0))


def _reach(tensor: TensorBase) -> int:
    """How many elements of the memory, from its first one on, a tensor spans."""
    sizes = sizes_of(tensor)
    if 0 in sizes:
        return 0
    return 1 + sum([(size - 1) * step for size, step in zip(sizes, strides(tensor), strict=True)])


def set_(tensor: TensorBase, source: TensorBase | None) -> None:
    """Make a tensor share another one's memory; without one it is empty.

    The existing graph no longer refers to the tensor: a leaf becomes a new leaf.

    Raises:
        RuntimeError: the dtypes differ; grad mode is on and the tensor requires grad.
    """
    if source is None:
        source = F.empty(0, dtype=tensor.dtype, device=tensor.device)
    if source.dtype is not tensor.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype.scalar_name} to a tensor of type "
            f"{tensor.dtype.scalar_name}"
        )
    check_inplace(tensor)
    if needs_grad(tensor) and current_state().grad_enabled:
        raise NotImplementedError("the derivative for 'set_' is not implemented.")
    bump_version(tensor)
    tensor.device = source.device
    _move_to(tensor, source)
    meta = tensor._autograd_meta
    if meta is not None:
        meta.accumulator = None


def _move_to(tensor: TensorBase, source: TensorBase) -> None:
    """Move a tensor to another one's memory. Its former views keep the old memory; backward notices
    by the version that the saved tensor has changed."""
    storage = Storage()
    storage.version = version_of(tensor)
    tensor._shared_storage = storage
    take_over(tensor, source)
