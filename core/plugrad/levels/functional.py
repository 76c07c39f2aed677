"""A level without writes: an in-place operator runs as the functional one, and its result replaces
the target's elements."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

from plugrad.dispatch.keys import BACKEND_MASK, DENSE_BIT, FUNCTIONALIZE_BIT
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.levels.arguments import values_at
from plugrad.tensor.aliasing.functionalize import extend, rebind
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.promotion import check_inplace_cast
from plugrad.tensor.levels import LEVEL_KEYSET, UNBATCHED, Level, Wrapped, step_in, step_out

VIEWS: Final[i64] = (LEVEL_KEYSET & (BACKEND_MASK | DENSE_BIT)) | FUNCTIONALIZE_BIT


# Those in place that have a functional operator of another name.
_FULL: Final = {"fill_.Scalar": "plugrad::full_like", "zero_": "plugrad::zeros_like"}


def write_functionally(
    op: Operator, state: LocalState, level: Level, args: tuple[Any, ...]
) -> TensorBase:
    """An operator in place on a tensor of the level, which it gives back."""
    target: TensorBase = args[0]
    if op.structure == "inplace_view":
        view = _functional_of(op)
        extend(target, view.lookup(VIEWS)(VIEWS, *args))
        return target
    values = values_at(args, level)
    former: TensorBase = values[0]
    stepped = step_out(state, level)
    try:
        result = _result(op, values)
        if result.dtype is not former.dtype:
            check_inplace_cast(result.dtype, former.dtype)
            result = _call("plugrad::_to_copy", result, former.dtype)
        if sizes_of(result) != sizes_of(former):
            result = _call("plugrad::expand", result, sizes_of(former), False)
        if result is former:
            result = _call("plugrad::alias", result)
    finally:
        step_in(state, stepped)
    rebind(target, Wrapped(result, level, UNBATCHED))
    return target


def _result(op: Operator, values: tuple[Any, ...]) -> TensorBase:
    """The new elements: from the functional operator, or written into a copy."""
    functional = _functional_of(op)
    if op.name == "copy_":
        target: TensorBase = values[0]
        source = _call("plugrad::_to_copy", values[1], target.dtype)
        if source.device is not target.device:
            source = _call("plugrad::_to_device", source, target.device)
        return source
    if op.full_name in _FULL:
        return _call(_FULL[op.full_name], *values)
    if functional is not None:
        result: TensorBase = functional.call(values)
        return result
    copied: TensorBase = _call("plugrad::clone", values[0])
    op.call((copied, *values[1:]))
    return copied


def _functional_of(op: Operator) -> Any:
    name = f"{op.namespace}::{op.name[:-1]}"
    return find_operator(f"{name}.{op.overload}" if op.overload else name)


def _call(name: str, *given: Any) -> TensorBase:
    op: Any = find_operator(name)
    out: TensorBase = op(*given)
    return out


def settle(written: list[tuple[TensorBase, TensorBase]]) -> None:
    """Copy into arguments what was written to them."""
    for target, value in written:
        _call("plugrad::copy_", target, value)
