"""Overlap within one tensor: what `expand` gives cannot be written to element by element."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from plugrad.dispatch.keys import FUNCTIONALIZE_BIT
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.functionalize import repeats_elements

# One value for all, so that it hardly matters which write comes last: PyTorch lets these pass.
_UNIFORM: Final = ("fill_", "zero_", "masked_fill_", "index_put_")


def check_overlap(target: TensorBase, operator: str) -> None:
    """Whether each element of a view has memory of its own.

    Raises:
        RuntimeError: a dimension repeats its elements, as those do that `expand` adds.
    """
    if target.keyset & FUNCTIONALIZE_BIT:
        if operator not in _UNIFORM and repeats_elements(target):
            raise_overlap()
        return
    strides: Any = getattr(target.array, "strides", None)
    if strides is None or 0 not in strides or operator in _UNIFORM:
        return
    sizes = sizes_of(target)
    if 0 in sizes:
        return
    for size, stride in zip(sizes, strides, strict=True):
        if stride == 0 and size > 1:
            raise_overlap()


def raise_overlap() -> NoReturn:
    raise RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation."
    )
