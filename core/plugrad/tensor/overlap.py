"""Overlap within one tensor: what `expand` gives cannot be written to element by element."""

from __future__ import annotations

from typing import Any, Final

from plugrad.tensor.base import TensorBase, sizes_of

# One value for all, so that it hardly matters which write comes last: PyTorch lets these pass.
_UNIFORM: Final = ("fill_", "zero_", "masked_fill_", "index_put_")


def check_overlap(target: TensorBase, operator: str) -> None:
    """Whether each element of a view has memory of its own.

    Raises:
        RuntimeError: a dimension repeats its elements, as those do that `expand` adds.
    """
    strides: Any = getattr(target.array, "strides", None)
    if strides is None or 0 not in strides or operator in _UNIFORM:
        return
    sizes = sizes_of(target)
    if 0 in sizes:
        return
    for size, stride in zip(sizes, strides, strict=True):
        if stride == 0 and size > 1:
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to "
                "a single memory location. Please clone() the tensor before performing the "
                "operation."
            )
