"""Memory of tensors that is read and written without operators. Every collective uses it, so it is
compiled."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.keys import FUNCTIONALIZE_BIT, MATH_BITS, TRANSFORMS_BIT
from plugrad.dispatch.local_state import current_state
from plugrad.tensor.base import TensorBase, bump_version, is_inference


def is_direct(tensor: Any) -> bool:
    """Whether the tensor's array may be read and written to without an operator: this thread has no
    listener, no transform maps over the tensor, and the array is memory that has the tensor's
    values, not their conjugates or negatives."""
    asked: TensorBase = tensor
    state = current_state()
    return (
        state.trace is None
        and state.array_log is None
        and asked._keyset & (FUNCTIONALIZE_BIT | TRANSFORMS_BIT | MATH_BITS) == 0
        and asked.device.type != "meta"
    )


def memory_to_write(value: object) -> Any:
    """The NumPy array of a tensor on the CPU that may be read and written to without an operator
    (`is_direct`) and holds the elements in row-major order; None for other tensors, and for what
    is none.

    The caller is about to write to it: autograd learns of that here, like from
    `plugrad.autograd.graph.increment_version`.
    """
    if not isinstance(value, TensorBase) or value.device.type != "cpu" or not is_direct(value):
        return None
    array: Any = value.array
    if not array.flags.carray:
        return None
    note_write(value)
    return array


def note_write(written: TensorBase) -> None:
    """Record a write to the elements of a tensor that bypassed operators."""
    if not is_inference(written):
        bump_version(written)
