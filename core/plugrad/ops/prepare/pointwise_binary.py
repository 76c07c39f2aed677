"""Arguments of elementwise arithmetic that needs more than promotion."""

from __future__ import annotations

from typing import Any

from plugrad.dtype import FLOATING, bool_, get_default_dtype
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.elementwise_kernels import check_alpha
from plugrad.tensor.calls.promotion import check_scalar_fits, result_type, to_dtype


def _is_bool(operand: Any) -> bool:
    return operand.dtype is bool_ if isinstance(operand, TensorBase) else isinstance(operand, bool)


def check_sub(self: Any, other: Any, alpha: Any) -> None:
    """RuntimeError for bools, which cannot be subtracted."""
    first = _is_bool(self)
    second = _is_bool(other)
    if first or second:
        which = "two bool tensors" if first and second else "a bool tensor"
        advice = (
            "Use the `^` or `logical_xor()` operator instead."
            if first and second
            else "If you are trying to invert a mask, use the `~` or `logical_not()` operator "
            "instead."
        )
        raise RuntimeError(
            f"Subtraction, the `-` operator, with {which} is not supported. {advice}"
        )


def rsub_scalar(self: TensorBase, other: Any, alpha: Any) -> tuple[object, ...]:
    check_sub(self, other, alpha)
    dtype = result_type(self, other)
    check_alpha(alpha, dtype)
    return (to_dtype(self, dtype), other, alpha)


def check_power(self: Any, exponent: Any, alpha: Any) -> None:
    """RuntimeError for a number that the dtype of an integer power cannot hold."""
    if not isinstance(exponent, TensorBase):
        dtype = result_type(self, exponent)
        if dtype.category < FLOATING:
            check_scalar_fits(exponent, dtype)


def div_mode(self: TensorBase, other: Any, rounding_mode: Any) -> tuple[object, ...]:
    """Both operands in the dtype of the result: only a true division makes integers float."""
    if rounding_mode is not None and rounding_mode != "trunc" and rounding_mode != "floor":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    dtype = result_type(self, other)
    if rounding_mode is None and dtype.category < FLOATING:
        dtype = get_default_dtype()
    if isinstance(other, TensorBase):
        other = to_dtype(other, dtype)
    return (to_dtype(self, dtype), other, rounding_mode)
