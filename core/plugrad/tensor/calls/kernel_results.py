"""Checks what a raw kernel returned, and finds the kernel that runs next if it declined."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad._intrinsics import array_dtype, array_shape
from plugrad.device import Device
from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend, find_backend
from plugrad.dispatch.backends.candidates import note_declined, plain, tells_itself
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, make_tensor, sizes_of, whole_numbers
from plugrad.tensor.meta.array import MetaArray


def note_alone(op: Operator, active: ActiveBackend, raw: Any) -> None:
    """Notify listeners that a single kernel has declined; a list of candidates does so itself."""
    if not tells_itself(raw):
        found = plain(active.candidates(op.kernel_name, op.overload))
        note_declined(op.qualified_name, found[0].owner if found else "")


def run_next(
    op: Operator, active: ActiveBackend, raw: Any, registered: bool, args: tuple[Any, ...]
) -> Any:
    """Run the kernels after an operator's kernels on arrays, which have declined."""
    note_alone(op, active, raw)
    dense = _dense(active)
    return op.next_kernel(active, registered)(dense, *args)


def is_foreign(op: Operator, active: ActiveBackend, registered: bool) -> bool:
    """Whether another package has a kernel for an operator, which is then checked when it returns;
    a backend's own are the conformance kit's to check."""
    if registered:
        return True
    return any(not each.own for each in active.candidates(op.kernel_name, op.overload))


def check_array(
    op: Operator, active: ActiveBackend, array: Any, dtype: DType, sizes: tuple[int, ...]
) -> None:
    """TypeError if what a kernel returned has another dtype or shape than the operator's result."""
    found = active.backend.dtype_of(array)
    if found is not dtype:
        what = f"an array of {found.name}: expected {dtype.name}"
        raise active.returned(op.qualified_name, what)
    shape = whole_numbers(array.shape, array)
    if shape != sizes:
        what = f"an array of shape {list(shape)}: expected {list(sizes)}"
        raise active.returned(op.qualified_name, what)


@final
class ArrayCheck:
    """`check_array` for the results of one operator, with little to do for one like the last."""

    def __init__(self, op: Operator, active: ActiveBackend) -> None:
        self.op = op
        self.active = active
        # The dtype of the last result, and what the array called it.
        self.dtype: Any = None
        self.native: Any = None

    def look_at(self, array: Any, dtype: DType, sizes: tuple[int, ...]) -> None:
        """TypeError as `check_array` raises."""
        try:
            native = array_dtype(array)
        except AttributeError:  # an array of a library that calls it otherwise
            native = None
        if native is self.native and dtype is self.dtype and array_shape(array) == sizes:
            return
        check_array(self.op, self.active, array, dtype, sizes)
        self.native = native
        self.dtype = dtype


def check_like_meta(
    op: Operator, active: ActiveBackend, checked: set[DType], args: tuple[Any, ...], result: Any
) -> None:
    """The same for an operator with a result that only the device `meta` can predict. It runs once
    for each dtype, because it takes longer than most kernels. If it fails, nothing is checked."""
    dtype = _dtype_among(args)
    if dtype is None or dtype in checked or active.number == keys.META:
        return
    checked.add(dtype)
    expected = _on_meta(op, args)
    if isinstance(expected, TensorBase):
        _check_tensor(op, active, result, expected)
    elif isinstance(expected, (tuple, list)) and isinstance(result, (tuple, list)):
        for found, wanted in zip(result, expected, strict=False):
            _check_tensor(op, active, found, wanted)


def _check_tensor(op: Operator, active: ActiveBackend, found: Any, wanted: Any) -> None:
    if not isinstance(found, TensorBase) or not isinstance(wanted, TensorBase):
        return
    try:
        active.backend.native_dtype(wanted.dtype)
    except TypeError:  # the backend has to use another one
        return
    check_array(op, active, found._backend_array, wanted.dtype, sizes_of(wanted))


def _dtype_among(args: tuple[Any, ...]) -> DType | None:
    for value in args:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase):
                return item.dtype
    return None


def _on_meta(op: Operator, args: tuple[Any, ...]) -> Any:
    """The result of an operator for tensors without elements; None if this is unknown."""
    meta = find_backend("meta")
    dense = _dense(meta)
    state = current_state()
    kept = state.kept
    trace = state.trace
    state.kept = kept & ~(keys.AUTOGRAD_KEYS | keys.AUTOCAST_BIT | keys.TRANSFORMS_BIT)
    state.trace = None
    try:
        moved = [_moved(value, meta) for value in args]
        return op.lookup(dense)(dense, *moved)
    except Exception:
        return None  # what depends on elements, or has no shape rule
    finally:
        state.kept = kept
        state.trace = trace


def _moved(value: Any, meta: ActiveBackend) -> Any:
    if isinstance(value, TensorBase):
        array = MetaArray(sizes_of(value), value.dtype)
        return make_tensor(array, value.dtype, meta.device(None), meta.tensor_keyset)
    if isinstance(value, Device):
        return meta.device(None)
    if isinstance(value, list):
        return [_moved(item, meta) for item in value]
    if isinstance(value, tuple):
        return tuple([_moved(item, meta) for item in value])
    return value


def _dense(active: ActiveBackend) -> i64:
    dense: i64 = active.tensor_keyset & (keys.BACKEND_MASK | keys.DENSE_BIT)
    return dense
