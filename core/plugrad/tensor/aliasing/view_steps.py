"""The steps of a view when one more is added: `as_strided` starts from the base's memory.

    y.diagonal().as_strided((2,), (1,))      is, of y:      y.as_strided((2,), (1,))

`as_strided` counts in memory, so it can reach elements outside the view that it is called on. Only
the base has them all, so gradients of a view that was written to must not pass through the views in
between.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

from plugrad.dispatch.keys import CONJUGATE_BIT, NEGATIVE_BIT
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.tensor.aliasing.layout import is_contiguous, storage_offset, strides
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.math_bits import math_bits
from plugrad.tensor.views import AS_STRIDED, ViewInfo, ViewStep

_VIEW_AS_REAL: Final = "plugrad::view_as_real"
_CONJ: Final = "plugrad::_conj"
_NEG_VIEW: Final = "plugrad::_neg_view"
_VIEW_AS_COMPLEX: Final = "plugrad::view_as_complex"


def extended(
    outer: ViewInfo, source: TensorBase, op: Operator, arguments: tuple[Any, ...], position: int
) -> ViewInfo:
    """The `ViewInfo` that makes one result of `op(source, *arguments)` a view of the base of
    `source`; `outer` is the source's. Version and creation meta come from `outer`."""
    if op.name == AS_STRIDED and not outer.last.primal_only:
        last = _from_memory(outer.base, source, op, arguments)
        if last is not None:
            made = _continued(outer, None, op, arguments, position)
            made.last = last
            storage = outer.base._shared_storage
            if storage is not None and storage.geometries is not None:
                made.geometries = len(storage.geometries)
            return made
    made = _continued(outer, outer.last, op, arguments, position)
    made.geometries = outer.geometries
    return made


def _continued(
    outer: ViewInfo,
    before: ViewStep | None,
    op: Operator,
    arguments: tuple[Any, ...],
    position: int,
) -> ViewInfo:
    return ViewInfo(outer.base, before, op, arguments, position, outer.version, outer.creation_meta)


def _from_memory(
    base: TensorBase, source: TensorBase, op: Operator, arguments: tuple[Any, ...]
) -> ViewStep | None:
    """`as_strided` of the base itself, in numbers of the dtype of `source`; None if there is no
    view of the base that has this dtype and all its elements."""
    size, stride, offset, _, _ = arguments
    steps, start = strides(base), storage_offset(base)
    bits, wanted = math_bits(base), math_bits(source)
    if source.dtype is base.dtype:
        last = ViewStep(None, op, (size, stride, offset, steps, start), -1)
        return _toggled(last, bits ^ wanted)
    if base.dtype.is_complex:
        # A conjugate has no view as real numbers.
        stored = _toggled(None, bits & CONJUGATE_BIT)
        parts = ViewStep(stored, _operator(_VIEW_AS_REAL), (), -1)
        steps = (*[2 * step for step in steps], 1)
        last = ViewStep(parts, op, (size, stride, offset, steps, 2 * start), -1)
        return _toggled(last, (bits ^ wanted) & NEGATIVE_BIT)
    count = 1
    for length in sizes_of(base):
        count *= length
    if not is_contiguous(base) or start % 2 or count % 2:
        return None
    pairs = ViewStep(None, op, ((count // 2, 2), (2, 1), start, steps, start), -1)
    whole = ViewStep(pairs, _operator(_VIEW_AS_COMPLEX), (), -1)
    last = ViewStep(whole, op, (size, stride, offset, (1,), start // 2), -1)
    return _toggled(last, bits ^ wanted)


def _toggled(last: ViewStep | None, bits: i64) -> ViewStep | None:
    """The steps, followed by those that toggle conjugation and negation by `bits`."""
    if bits & CONJUGATE_BIT:
        last = ViewStep(last, _operator(_CONJ), (), -1)
    if bits & NEGATIVE_BIT:
        last = ViewStep(last, _operator(_NEG_VIEW), (), -1)
    return last


def _operator(name: str) -> Operator:
    found = find_operator(name)
    assert found is not None
    return found
