"""Nested sequences of numbers as NumPy arrays, with PyTorch's inference of shape and dtype."""

from __future__ import annotations

from array import array as c_array
from collections.abc import Sequence
from itertools import chain
from operator import index
from typing import Any, Final

import numpy as np

from plugrad.dtype import (
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    bool_,
    float8_e4m3fn,
    float32,
    float64,
    get_default_dtype,
    int64,
    promote_types,
    uint64,
)
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.promotion import convert_array, saturated
from plugrad.tensor.interop.arrays import numpy_dtype
from plugrad.tensor.interop.values import index as tensor_index
from plugrad.tensor.interop.values import to_complex, to_float

# NumPy's limit, under which host memory is arranged; PyTorch's is twice that.
_MAX_DIMS: Final = 64
_INT64_LIMIT: Final = 2.0**63
_PLAIN_SEQUENCES: Final = frozenset([list, tuple])
_PLAIN_NUMBERS: Final = frozenset([bool, int, float, complex])


def is_sequence(value: object) -> bool:
    """Whether `value` counts as one more level of nesting."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (bool, int, float, complex, TensorBase, dict, np.generic, bytes)):
        return False
    if isinstance(value, Sequence):
        return True
    return hasattr(value, "__getitem__") and hasattr(value, "__len__")


def scalar_type(value: object) -> DType:
    """The dtype of one innermost element."""
    if isinstance(value, (np.generic, np.ndarray)):
        return numpy_dtype(np.asarray(value))
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return get_default_dtype()
    if isinstance(value, complex):
        return get_default_dtype().to_complex()
    if isinstance(value, TensorBase):
        return value.dtype
    if isinstance(value, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
    name = type(value).__name__
    module = type(value).__module__
    # PyTorch names a class as its C type slot does: with the module only for extension types.
    shown = f"{module}.{name}" if module == "decimal" else name
    raise RuntimeError(f"Could not infer dtype of {shown}")


def _infer(data: Any) -> DType:
    """The dtype that holds every element of nested sequences; an empty one counts as a float."""
    if isinstance(data, str) or not is_sequence(data):
        return scalar_type(data)
    if isinstance(data, np.ndarray):
        return numpy_dtype(data)
    if len(data) == 0:
        return get_default_dtype()
    result: DType | None = None
    for element in data:
        if element is data:
            raise TypeError("new(): self-referential lists are incompatible")
        dtype = _infer(element)
        result = dtype if result is None else promote_types(result, dtype)
    assert result is not None
    return result


def _shape_of(data: Any) -> tuple[int, ...]:
    """The lengths along the first element of each level, which the others must match."""
    shape: list[int] = []
    level = data
    while is_sequence(level):
        shape.append(len(level))
        if len(shape) > _MAX_DIMS:
            raise ValueError(f"too many dimensions '{type(level).__name__}'")
        if len(level) == 0:
            break
        first = level[0]
        if first is level and not isinstance(level, str):
            raise TypeError("new(): self-referential lists are incompatible")
        level = first
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...]) -> list[Any]:
    """The innermost elements in order; ValueError or TypeError unless all levels match `shape`."""
    level: list[Any] = [data]
    for dim, length in enumerate(shape):
        if not set(map(type, level)) <= _PLAIN_SEQUENCES:
            for element in level:
                if not is_sequence(element):
                    raise TypeError("not a sequence")
        for found in set(map(len, level)):
            if found != length:
                raise ValueError(f"expected sequence of length {length} at dim {dim} (got {found})")
        level = list(chain.from_iterable(level))
    return level


def _to_int(value: Any) -> int:
    """An element for an integer tensor: floats are cut towards zero."""
    if isinstance(value, float):
        if not abs(value) < _INT64_LIMIT:
            raise OverflowError
        return int(value)
    if isinstance(value, TensorBase):
        return tensor_index(value)
    return index(value)


def _to_float(value: Any) -> float:
    if isinstance(value, TensorBase):
        return to_float(value)
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, complex) or not _is_real(value):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return float(value)


def _is_real(value: object) -> bool:
    return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")


def _to_complex(value: Any) -> complex:
    if isinstance(value, TensorBase):
        return to_complex(value)
    if not hasattr(type(value), "__complex__") and not _is_real(value):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return complex(value)


def _to_bool(value: Any) -> bool:
    if isinstance(value, (float, complex, TensorBase, np.bool_, np.ndarray)):
        return bool(value)
    return index(value) != 0


def _overflow(dtype: DType) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")


def _int_array(values: list[Any], plain: bool, dtype: DType) -> Any:
    """Integers of the given width; RuntimeError if one does not fit."""
    if not plain:
        try:
            values = [_to_int(value) for value in values]
        except OverflowError:
            raise _overflow(dtype) from None
        plain = True
    if dtype is uint64:
        return _uint64_array(values)
    try:
        wide = np.array(values, dtype=np.int64)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if dtype is int64:
        return wide
    bits = dtype.itemsize * 8
    highest = 2 ** (bits - 1) - 1 if dtype.is_signed else 2**bits - 1
    # Negative numbers wrap around in an unsigned type, as in C, as long as they do so once.
    lowest = -highest - 1 if dtype.is_signed else -highest
    if wide.size and (int(wide.max()) > highest or int(wide.min()) < lowest):
        raise _overflow(dtype)
    return wide.astype(dtype.numpy)


def _uint64_array(values: list[Any]) -> Any:
    """Integers up to 2**64 - 1, which int64 has no room for."""
    if values and max(values) >= 1 << 64:
        raise OverflowError("int too big to convert")
    if values and min(values) < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return np.array(values, dtype=np.uint64)


def _real_array(values: list[Any], dtype: DType) -> Any:
    if dtype is float64:
        return np.array(values, dtype=np.float64)
    # c_array casts as C does, where NumPy would warn of an overflow to infinity.
    single = np.array(c_array("f", values))
    if dtype is float32:
        return single
    with np.errstate(over="ignore"):
        # The narrow types round from float32, as PyTorch's conversion from double does.
        return (saturated(single) if dtype is float8_e4m3fn else single).astype(dtype.numpy)


def array_of(values: list[Any], dtype: DType) -> Any:
    """A flat NumPy array of the elements, each converted as PyTorch converts it."""
    types = set(map(type, values))
    if dtype.category == INTEGER:
        if float in types and not dtype.is_signed:
            for value in values:
                if isinstance(value, float) and value < 0:
                    raise _overflow(dtype)
        return _int_array(values, types <= {bool, int}, dtype)
    if dtype.category == FLOATING:
        if not types <= {bool, int, float}:
            values = [_to_float(value) for value in values]
        return _real_array(values, dtype)
    if dtype.category == COMPLEX:
        if not types <= _PLAIN_NUMBERS:
            values = [_to_complex(value) for value in values]
        with np.errstate(over="ignore"):
            return np.array(values, dtype=np.complex128).astype(dtype.numpy, copy=False)
    if not types <= _PLAIN_NUMBERS:
        values = [_to_bool(value) for value in values]
    return np.array(list(map(bool, values)), dtype=np.bool_)


def _infer_flat(values: list[Any], data: Any) -> DType:
    """What `_infer(data)` gives, without a second walk where the elements are plain numbers."""
    types = set(map(type, values))
    if not values or not types <= _PLAIN_NUMBERS:
        return _infer(data)
    if complex in types:
        return get_default_dtype().to_complex()
    if float in types:
        return get_default_dtype()
    return int64 if int in types else bool_


def _stacked(arrays: Any) -> Any:
    """A list of NumPy arrays of one shape as one array; None if it is something else."""
    if set(map(type, arrays)) != {np.ndarray} or len({array.shape for array in arrays}) != 1:
        return None
    for array in arrays:
        numpy_dtype(array)
    return np.stack(arrays)


def plain_data(data: list[Any], dtype: DType | None) -> tuple[Any, DType] | None:
    """What most people write, lists of lists of floats or of ints, as an array and its dtype.

    None for anything else, and for what may be an error: see `sequence_array`.
    """
    shape: list[int] = []
    first: Any = data
    while type(first) is list and len(shape) < _MAX_DIMS:
        if not first:
            return None
        shape.append(len(first))
        first = first[0]
    kind = type(first)
    if kind is float:
        wanted = get_default_dtype() if dtype is None else dtype
        if wanted is not float32 and wanted is not float64:
            return None
    elif kind is int:
        wanted = int64 if dtype is None else dtype
        if wanted is not int64:
            return None
    else:
        return None
    level = data
    for length in shape[1:]:
        below: list[Any] = []
        for row in level:
            if type(row) is not list or len(row) != length:
                return None
            below.extend(row)
        level = below
    for value in level:
        if type(value) is not kind:
            return None
    try:
        found = np.array(level, np.int64) if wanted is int64 else _real_array(level, wanted)
    except OverflowError:
        return None
    return found if len(shape) == 1 else found.reshape(tuple(shape)), wanted


def sequence_array(data: Any, dtype: DType | None) -> Any:
    """Nested sequences as a NumPy array of the requested dtype, or of the dtype of their
    elements."""
    if isinstance(data, type):
        raise TypeError(f"new(): data must be a sequence (got {type_name(data)})")
    if len(data) > 0 and isinstance(data[0], np.ndarray):
        stacked = _stacked(data)
        if stacked is not None:
            found = _infer(data)
            return convert_array(stacked, numpy_dtype(stacked), found if dtype is None else dtype)
    shape = _shape_of(data)
    if 0 in shape:
        return np.empty(shape, dtype=(_infer(data) if dtype is None else dtype).numpy)
    try:
        values = _flatten(data, shape)
    except (TypeError, ValueError):
        # An element without a dtype is the better explanation of why the levels do not match.
        if dtype is None:
            _infer(data)
        raise
    wanted = _infer_flat(values, data) if dtype is None else dtype
    return array_of(values, wanted).reshape(shape)
