"""Checks overlap in memory: within a tensor that is written to, and between it and tensors that are
read.

The result of `expand` cannot be written to element by element. An operator may read the elements
that it writes only in the same order, or not at all.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from plugrad.dispatch.keys import FUNCTIONALIZE_BIT, TRANSFORMS_BIT
from plugrad.tensor.aliasing.functionalize import repeats_elements
from plugrad.tensor.aliasing.layout import storage_offset, strides
from plugrad.tensor.base import TensorBase, ndim_of, numel_of, sizes_of

# They write one value to all places, so the order of writes does not matter much: PyTorch lets
# these pass.
_UNIFORM: Final = ("fill_", "zero_", "masked_fill_", "index_fill_", "index_put_")

# Operators that give results that depend on the order of reads and writes if they read what they
# write.
APART: Final = frozenset([
    "index_add_", "index_copy_", "index_fill_", "index_put_", "put_", "scatter_", "scatter_add_",
    "scatter_reduce_",
])  # fmt: skip
# The same for functions with `out=`, and for overloads.
OUT_APART: Final = frozenset([
    "cat", "concat", "concatenate", "diff", "gather", "index_select", "kthvalue", "masked_select",
    "max.dim", "median.dim", "min.dim", "stack", "take",
])  # fmt: skip
# They may write into what they read only if it is all of it.
OUT_WHOLE: Final = frozenset(["cumprod", "cumsum"])
# They require that elements of `out` do not share memory before they resize it.
_ASKED_FIRST: Final = frozenset([
    "diff", "index_select", "masked_select", "nonzero", "scatter", "take",
])  # fmt: skip
# As many elements in the result as in what is joined, or as in the index.
_JOINING: Final = frozenset(["cat", "concat", "concatenate", "stack"])
_BY_INDEX: Final = frozenset(["gather", "take"])
# They compute everything first, and write then.
_UNCHECKED: Final = frozenset(["addbmm_", "addmm_", "addmv_", "baddbmm_", "masked_scatter_"])
# They read one number first, if they are given one.
_OF_NUMBER: Final = frozenset(["fill_", "index_fill_", "masked_fill_"])

_MAGNITUDES: Final = frozenset(["abs", "absolute"])


def check_overlap(target: TensorBase, operator: str) -> None:
    """Whether each element of a view has memory of its own.

    Raises:
        RuntimeError: a dimension repeats its elements, as those do that `expand` adds.
    """
    if target._keyset & FUNCTIONALIZE_BIT:
        if operator not in _UNIFORM and repeats_elements(target):
            raise_overlap()
        return
    strides: Any = getattr(target._backend_array, "strides", None)
    if strides is None or 0 not in strides or operator in _UNIFORM:
        return
    sizes = sizes_of(target)
    if 0 in sizes:
        return
    for size, stride in zip(sizes, strides, strict=True):
        if stride == 0 and size > 1:
            raise_overlap()


def check_operands(
    target: TensorBase, args: tuple[Any, ...], operator: str, least: int = 0
) -> None:
    """Check that the tensors that an operator reads do not overlap with the one that it writes.

    Args:
        least: the target will have at least this number of elements.

    Raises:
        RuntimeError: some elements of an operand are in the memory that is written to, and not
            all of them in the same order; or any at all, where an operator writes to places that
            an index names.
    """
    for value in args:
        if isinstance(value, TensorBase):
            _check_operand(target, value, operator, least)
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, TensorBase):
                    _check_operand(target, item, operator, least)


def check_out(function: str, out: Any, args: tuple[Any, ...], elementwise: bool = False) -> None:
    """`check_operands` for the tensor, or tensors, given as `out=`; most functions write when they
    have read everything."""
    if function in _MAGNITUDES and isinstance(out, TensorBase):
        _check_magnitudes(out, args[0])
    if elementwise or function in _ASKED_FIRST:
        for target in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(target, TensorBase):
                check_overlap(target, function)
    if not elementwise and function not in OUT_APART and function not in OUT_WHOLE:
        return
    for target in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(target, TensorBase):
            check_operands(target, args, function, _elements_of_result(function, args))


def _check_magnitudes(out: TensorBase, given: TensorBase) -> None:
    """RuntimeError unless `out` has the input's dtype, or is real where the input is complex."""
    if out.dtype is not given.dtype and (out.dtype.is_complex or not given.dtype.is_complex):
        raise RuntimeError(
            f"Found dtype {out.dtype.scalar_name} but expected {given.dtype.scalar_name}"
        )


def _elements_of_result(function: str, args: tuple[Any, ...]) -> int:
    """The number of elements of the result, if known: `out` may grow into what is read."""
    if function in _JOINING:
        return sum([numel_of(item) for item in args[0] if isinstance(item, TensorBase)])
    if function in _BY_INDEX:
        return int(args[-1].numel())
    return 0


def _check_operand(target: TensorBase, other: TensorBase, operator: str, least: int) -> None:
    apart = operator in APART or operator in OUT_APART
    if other is target:
        if apart and max(numel_of(target), least) > 0 and _is_dense(target):
            _raise_shared()
        return
    storage = target._shared_storage
    if storage is None or other._shared_storage is not storage or operator in _UNCHECKED:
        return
    if (target._keyset | other._keyset) & TRANSFORMS_BIT:
        return
    if operator in _OF_NUMBER and ndim_of(other) == 0:
        return
    if numel_of(target) == 0 or numel_of(other) == 0:
        return
    if not _is_dense(target) or not _is_dense(other):
        return
    start, begin = storage_offset(target), storage_offset(other)
    end = start + max(numel_of(target), least)
    if start == begin and numel_of(target) == numel_of(other) and not apart:
        if strides(target) != strides(other):
            _raise_shared()
    elif start < begin + numel_of(other) and begin < end:
        _raise_shared()


def _is_dense(tensor: TensorBase) -> bool:
    """Whether there are no gaps between a tensor's elements, and each has a place of its own."""
    steps = strides(tensor)
    expected = 1
    for stride, size in sorted(zip(steps, sizes_of(tensor), strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _raise_shared() -> NoReturn:
    raise RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer "
        "to a single memory location. Please clone() the tensor before performing the operation."
    )


def raise_overlap() -> NoReturn:
    raise RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation."
    )
