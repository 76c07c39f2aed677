"""Whether a gradient may be written to: only if nothing else refers to it."""

from __future__ import annotations

import sys
from typing import Final, final

from mypy_extensions import i64

from plugrad.device import CPU
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT, MATH_BITS, TRANSFORMS_BIT
from plugrad.dtype import float32
from plugrad.tensor.aliasing.cells import alias_of
from plugrad.tensor.base import TensorBase


def is_unshared(grads: list[TensorBase | None], index: i64, others: i64 = 0) -> bool:
    """Whether only the list refers to a gradient, and only the gradient to its array.

    This is read from reference counts. The caller must hold no reference besides the list's, or
    pass the number of references to ignore as `others`.
    """
    if _unshared.tensor < 0:
        _measure()
    grad = grads[index]
    if (
        grad is None
        or grad._keyset & (TRANSFORMS_BIT | MATH_BITS)
        or grad._shared_storage is not None
        or grad._autograd_meta is not None
    ):
        return False
    if grad._keyset & FUNCTIONALIZE_BIT:
        # Who else has the array keeps it as it is; who shares what is written has a place.
        if alias_of(grad) is not None:
            return False
        grad = None
        return _reference_count(grads, index) <= _unshared.tensor + others
    if getattr(grad._backend_array, "base", None) is not None:
        return False
    grad = None
    return (
        _reference_count(grads, index) <= _unshared.tensor + others
        and _array_reference_count(grads, index) <= _unshared.array
    )


def _reference_count(grads: list[TensorBase | None], index: i64) -> int:
    return sys.getrefcount(grads[index])


def _array_reference_count(grads: list[TensorBase | None], index: i64) -> int:
    grad = grads[index]
    assert grad is not None
    return sys.getrefcount(grad._backend_array)


@final
class _Counts:
    """The reference counts of a gradient with no other references; measured, since they differ
    between compiled and interpreted code."""

    def __init__(self) -> None:
        self.tensor: i64 = -1
        self.array: i64 = -1


_unshared: Final = _Counts()


def _measure() -> None:
    probe: list[TensorBase | None] = [TensorBase(_Probe(), float32, CPU, 0)]
    _unshared.array = _array_reference_count(probe, 0)
    _unshared.tensor = _reference_count(probe, 0)


class _Probe:
    """Stands in for an array while reference counts are measured."""
