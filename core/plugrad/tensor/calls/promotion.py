"""Type promotion: which dtype an operation on several operands computes in, by PyTorch's rules.

Operands fall into three categories: tensors with dimensions, 0-dim tensors, Python scalars. A lower
category changes the result only if it is of a higher kind (bool < integer < floating < complex)
than everything in the categories above it.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final

import numpy as np

from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.keys import TRANSFORMS_BIT
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import (
    ALL_DTYPES,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    bool_,
    float8_e4m3fn,
    get_default_dtype,
    int64,
    no_promotion,
    promote_or_none,
    promote_types,
    uint8,
    uint16,
    uint32,
)
from plugrad.tensor.base import TensorBase, ndim_of, wrap
from plugrad.tensor.calls.overridable import OVERRIDES, PROCEED, accept_foreign, override_call
from plugrad.tensor.math_bits import resolved

_KIND_OF_NUMPY: Final[dict[str, int]] = {
    "b": BOOL,
    "i": INTEGER,
    "u": INTEGER,
    "f": FLOATING,
    "c": COMPLEX,
}


def _yield_to(higher: DType, lower: DType) -> DType | None:
    """The result of a higher category's dtype and a lower category's; None if there is none."""
    if higher.category == COMPLEX:
        return higher
    if higher.category == FLOATING:
        if lower.category != COMPLEX:
            return higher
        return None if higher.is_float8 else higher.to_complex()
    if lower.category == COMPLEX:
        return lower if higher.category == INTEGER else promote_or_none(higher, lower)
    if higher.category == BOOL or lower.category >= FLOATING:
        return promote_or_none(higher, lower)
    return higher


# None stands for pairs that do not promote.
_PAIR: Final[list[list[DType | None]]] = [
    [promote_or_none(a, b) for b in ALL_DTYPES] for a in ALL_DTYPES
]
_YIELD: Final[list[list[DType | None]]] = [
    [_yield_to(a, b) for b in ALL_DTYPES] for a in ALL_DTYPES
]


def _yielding(higher: DType, lower: DType) -> DType:
    """`_yield_to`, raising PyTorch's RuntimeError for a pair that does not promote."""
    found = _YIELD[higher.index][lower.index]
    if found is not None:
        return found
    if higher.is_float8:
        return higher.to_complex()  # which raises
    raise no_promotion(higher, lower)


def is_scalar(value: object) -> bool:
    """Whether operators take `value` where they take a number: Python's, or a NumPy scalar."""
    if isinstance(value, (int, float, complex)):
        return True
    return isinstance(value, np.generic) and value.dtype.kind in _KIND_OF_NUMPY


def scalar_dtype(scalar: object) -> DType:
    """The dtype that a number counts as: bool, int64, the default dtype or its complex.

    Raises TypeError for anything that is not a number.
    """
    if isinstance(scalar, float):
        return get_default_dtype()
    if isinstance(scalar, bool):
        return bool_
    if isinstance(scalar, int):
        return int64
    if isinstance(scalar, complex):
        return get_default_dtype().to_complex()
    kind = _KIND_OF_NUMPY.get(scalar.dtype.kind) if isinstance(scalar, np.generic) else None
    if kind is None:
        raise TypeError(f"expected a Tensor or a number, got {type(scalar).__name__}")
    if kind == FLOATING:
        return get_default_dtype()
    if kind == INTEGER:
        return int64
    return bool_ if kind == BOOL else get_default_dtype().to_complex()


def promote_pair(a: TensorBase, b: TensorBase) -> DType:
    """The dtype in which a binary operation on two tensors computes."""
    left = a.dtype
    right = b.dtype
    if left is right:
        return left
    a_is_0_dim = ndim_of(a) == 0
    if a_is_0_dim == (ndim_of(b) == 0):
        found = _PAIR[left.index][right.index]
        if found is None:
            raise no_promotion(left, right)
        return found
    if a_is_0_dim:
        return _yielding(right, left)
    return _yielding(left, right)


def promote_with_scalar(a: TensorBase, scalar: object) -> DType:
    """The dtype in which a binary operation on a tensor and a Python number computes."""
    dtype = a.dtype
    # Only bool gives way to an integer, and only these two to a float.
    if isinstance(scalar, float):
        if dtype.category >= FLOATING:
            return dtype
    elif dtype.category >= INTEGER and isinstance(scalar, int):
        return dtype
    return _yielding(dtype, scalar_dtype(scalar))


def float_result(dtype: DType) -> DType:
    """The dtype of a result that is never integral, as for `exp` or true division."""
    return dtype if dtype.category >= FLOATING else get_default_dtype()


# PyTorch's names for the two operands, overload by overload.
_NAMES: Final = (
    ("tensor", "other"), ("scalar", "tensor"), ("scalar1", "scalar2"),
)  # fmt: skip


def result_type(*operands: object, **named: object) -> Any:
    """The dtype that an arithmetic operation on `operands`, tensors and numbers, gives.

    Two of them may be given by PyTorch's names: `tensor` and `other`, `scalar` and `tensor`,
    `scalar1` and `scalar2`.

    Raises TypeError if an operand is neither a Tensor nor a number.

    >>> import plugrad
    >>> plugrad.result_type(plugrad.tensor([1, 2], dtype=plugrad.int8), 1.5)
    plugrad.float32
    """
    if len(named) > 0:
        operands = _by_name(operands, named)
    if OVERRIDES.active:
        handled = override_call(result_type, operands, operands, {})
        if handled is not PROCEED:
            return handled
    for operand in operands:
        if not isinstance(operand, TensorBase) and accept_foreign(operand):
            return override_call(result_type, operands, operands, {})
    return common_dtype(operands)


def _by_name(operands: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...]:
    for names in _NAMES:
        rest = names[len(operands) :]
        if len(rest) == len(named) and named.keys() == set(rest):
            return operands + tuple([named[name] for name in rest])
    raise TypeError(f"result_type() got an unexpected keyword argument '{next(iter(named))}'")


def common_dtype(operands: tuple[Any, ...]) -> DType:
    """`result_type` of tensors and numbers."""
    dimensioned: DType | None = None
    zero_dim: DType | None = None
    number: DType | None = None
    for operand in operands:
        if isinstance(operand, TensorBase):
            dtype = operand.dtype
            if ndim_of(operand) > 0:
                dimensioned = dtype if dimensioned is None else promote_types(dimensioned, dtype)
            else:
                zero_dim = dtype if zero_dim is None else promote_types(zero_dim, dtype)
        else:
            dtype = scalar_dtype(operand)
            number = dtype if number is None else promote_types(number, dtype)
    result = combine_categories(dimensioned, zero_dim, number)
    if result is None:
        raise TypeError("result_type() needs at least one operand")
    return result


def combine_categories(
    dimensioned: DType | None, zero_dim: DType | None, number: DType | None
) -> DType | None:
    """The common dtype of the three categories' dtypes; some may be missing."""
    result: DType | None = None
    for category in (number, zero_dim, dimensioned):
        if category is not None:
            result = category if result is None else _yielding(category, result)
    return result


def can_cast(from_: DType, to: DType) -> bool:
    """Whether an in-place operation may write a result of dtype `from_` into a tensor of `to`.

    >>> import plugrad
    >>> plugrad.can_cast(plugrad.float64, plugrad.float32)
    True
    >>> plugrad.can_cast(plugrad.float32, plugrad.int64)
    False
    """
    if from_.category == COMPLEX:
        return to.category == COMPLEX
    if from_.category == FLOATING:
        return to.category >= FLOATING
    return from_.category == BOOL or to.category != BOOL


def check_inplace_cast(result: DType, output: DType) -> None:
    """Raise PyTorch's RuntimeError if a result cannot be written into an output of another kind."""
    if result is not output and not can_cast(result, output):
        raise RuntimeError(
            f"result type {result.scalar_name} can't be cast to the desired output type "
            f"{output.scalar_name}"
        )


# What C++ calls the element types, as PyTorch's overflow errors do.
_CPP_NAMES: Final[dict[str, str]] = {
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "float8_e5m2": "c10::Float8_e5m2",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
_LARGEST_FLOAT: Final[dict[str, float]] = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float32": 3.4028234663852886e38,
    "complex64": 3.4028234663852886e38,
}


def scalar_fits(value: Any, dtype: DType) -> bool:
    """Whether a number can be stored in `dtype`: no imaginary part lost, no overflow.

    Infinity and nan fit every float; a negative integer may wrap around once in an unsigned type.
    """
    category = dtype.category
    if category == BOOL:
        return True
    if isinstance(value, complex):
        if category == COMPLEX:
            return _float_fits(value.real, dtype) and _float_fits(value.imag, dtype)
        if value.imag != 0.0:
            return False
        value = value.real
    if category != INTEGER:
        return _float_fits(value, dtype)
    bits = dtype.itemsize * 8
    high = 2 ** (bits - 1) - 1 if dtype.is_signed else 2**bits - 1
    low = -high - 1
    if not dtype.is_signed:
        low = -high if isinstance(value, int) else 0
    return bool(low <= value <= high)


def _float_fits(value: Any, dtype: DType) -> bool:
    largest = _LARGEST_FLOAT.get(dtype.name)
    if largest is None or not abs(value) > largest:
        return True
    # float8_e4m3fn has no infinity.
    return bool(abs(value) == inf) and dtype is not float8_e4m3fn


def check_scalar_fits(value: Any, dtype: DType) -> None:
    """Raise PyTorch's RuntimeError if a number cannot be stored in `dtype`, as `fill_` does."""
    if not scalar_fits(value, dtype):
        raise RuntimeError(
            f"value cannot be converted to type {_CPP_NAMES[dtype.name]} without overflow"
        )


def stored_scalar(value: Any, dtype: DType) -> Any:
    """The number that a tensor of `dtype` holds for `value`: no complex one where there is none."""
    check_scalar_fits(value, dtype)
    if isinstance(value, complex) and dtype.category < COMPLEX:
        return value != 0 if dtype.category == BOOL else value.real
    return value


# Unsigned types that a negative float wraps around in by way of int64; uint64 does so directly.
_WRAPPING: Final = (uint8, uint16, uint32)
_LARGEST_E4M3FN: Final = 448.0


def saturated(array: Any) -> Any:
    """Elements for float8_e4m3fn, which has no infinity: too large ones become its largest
    number."""
    return np.clip(array, -_LARGEST_E4M3FN, _LARGEST_E4M3FN)


def convert_array(array: Any, found: DType, wanted: DType) -> Any:
    """A copy of a NumPy array in another dtype by PyTorch's conversion."""
    if found is wanted:
        return np.array(array)
    if found.category == COMPLEX and wanted.category < COMPLEX and wanted.category != BOOL:
        array = array.real
    with np.errstate(all="ignore"):
        if wanted.category == FLOATING and wanted.itemsize <= 2:
            single = array.astype(np.float32)
            return (saturated(single) if wanted is float8_e4m3fn else single).astype(wanted.numpy)
        if wanted in _WRAPPING and found.category == FLOATING:
            return array.astype(np.int64).astype(wanted.numpy)
        return array.astype(wanted.numpy)


def cast_array(array: Any, device_type: str, dtype: DType, index: int = 0) -> Any:
    """Copy a raw array on device `index` of a backend into another dtype.

    Without a kernel for it the elements go through host memory.
    """
    active = find_backend(device_type)
    kernel = active.raw_kernel("_to_copy", "")
    backend = active.backend
    if kernel is not None:
        out = kernel(array, backend.native_dtype(dtype))
        if type(out) is active.array_type:
            return out
        if out is not DECLINED:
            return active.taken(out, "plugrad::_to_copy")
    found = backend.dtype_of(array)
    return backend.from_host(convert_array(backend.to_host(array), found, dtype), index)


def to_dtype(tensor: TensorBase, dtype: DType) -> TensorBase:
    """`tensor` in another dtype, below autograd: no graph; the same object if nothing changes."""
    if tensor.dtype is dtype:
        return tensor
    return cast(tensor, dtype)


def cast(tensor: TensorBase, dtype: DType) -> TensorBase:
    """A copy of `tensor` in a dtype, below autograd."""
    if tensor._keyset & TRANSFORMS_BIT:
        # A level's tensor: its elements are further out, and possibly a graph, too.
        to_copy: Any = find_operator("plugrad::_to_copy")
        level_tensor: TensorBase = to_copy.call((tensor, dtype, None))
        return level_tensor
    device = tensor.device
    copied = cast_array(resolved(tensor)._backend_array, device.type, dtype, device.index or 0)
    return wrap(copied, dtype, device)
