"""Arguments of elementwise operators of three operands: checked, and in one dtype."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import COMPLEX, FLOATING, DType, bool_, uint8
from plugrad.tensor.base import TensorBase, ndim_of
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.promotion import check_scalar_fits, result_type, to_dtype


def _cast(operand: Any, dtype: DType) -> Any:
    """A tensor in `dtype`; numbers, which have to fit it, and None are left to the kernel."""
    if isinstance(operand, TensorBase):
        return to_dtype(operand, dtype)
    if operand is not None:
        check_scalar_fits(operand, dtype)
    return operand


def _is_real(number: Any) -> bool:
    """Whether it is None or a number of Python's that no floating dtype yields to."""
    return number is None or type(number) is float or type(number) is int


def _bounded(name: str, self: TensorBase, low: Any, high: Any) -> DType:
    dtype = self.dtype
    if dtype.category == FLOATING and _is_real(low) and _is_real(high):
        return dtype
    if low is not None:
        dtype = result_type(self, low) if high is None else result_type(self, low, high)
    elif high is not None:
        dtype = result_type(self, high)
    if dtype.category == COMPLEX:
        raise NotImplementedError(f"{name} is not supported for complex types")
    return dtype


def clamp(self: TensorBase, min: Any, max: Any) -> tuple[object, ...]:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    dtype = _bounded("clamp", self, min, max)
    if dtype is bool_ and min is not None and max is not None:
        raise NotImplementedError("\"clamp_cpu\" not implemented for 'Bool'")
    return (to_dtype(self, dtype), _cast(min, dtype), _cast(max, dtype))


def clamp_min(self: TensorBase, min: Any) -> tuple[object, ...]:
    dtype = _bounded("clamp", self, min, None)
    return (to_dtype(self, dtype), _cast(min, dtype))


def clamp_max(self: TensorBase, max: Any) -> tuple[object, ...]:
    dtype = _bounded("clamp", self, None, max)
    return (to_dtype(self, dtype), _cast(max, dtype))


def _condition(condition: TensorBase) -> TensorBase:
    if condition.dtype is not bool_ and condition.dtype is not uint8:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.scalar_name}"
        )
    return to_dtype(condition, bool_)


def where(condition: TensorBase, self: Any, other: Any) -> tuple[object, ...]:
    dtype = result_type(self, other)
    return (_condition(condition), _cast(self, dtype), _cast(other, dtype))


def where_numbers(condition: TensorBase, self: Any, other: Any) -> tuple[object, ...]:
    return (_condition(condition), self, other, result_type(self, other))


def _check_lerp(name: str, dtype: DType, found: DType) -> None:
    if found is not dtype:
        raise RuntimeError(
            f"expected dtype {CPP_NAMES[dtype.name]} for `{name}` but got dtype "
            f"{CPP_NAMES[found.name]}"
        )


def lerp(self: TensorBase, end: TensorBase, weight: Any) -> tuple[object, ...]:
    _check_lerp("end", self.dtype, end.dtype)
    if isinstance(weight, TensorBase):
        if ndim_of(weight) == 0:
            weight = to_dtype(weight, self.dtype)
        _check_lerp("weight", self.dtype, weight.dtype)
    if self.dtype.category < FLOATING:
        kernel = "lerp_kernel_tensor" if isinstance(weight, TensorBase) else "lerp_kernel_scalar"
        raise not_implemented(kernel, self.dtype)
    return (self, end, weight)


def _three(
    self: TensorBase, tensor1: TensorBase, tensor2: TensorBase, value: Any
) -> tuple[object, ...]:
    dtype = result_type(self, tensor1, tensor2)
    if dtype is bool_:
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'")
    check_scalar_fits(value, dtype)
    factor = int(value) if dtype.category < FLOATING else value
    return (to_dtype(self, dtype), to_dtype(tensor1, dtype), to_dtype(tensor2, dtype), factor)


def addcmul(
    self: TensorBase, tensor1: TensorBase, tensor2: TensorBase, value: Any
) -> tuple[object, ...]:
    return _three(self, tensor1, tensor2, value)


def addcdiv(
    self: TensorBase, tensor1: TensorBase, tensor2: TensorBase, value: Any
) -> tuple[object, ...]:
    if tensor1.dtype.category < FLOATING and tensor2.dtype.category < FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release "
            "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
            "behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to("
            "input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float "
            "inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )
    return _three(self, tensor1, tensor2, value)
