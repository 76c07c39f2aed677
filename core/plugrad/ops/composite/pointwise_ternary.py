"""Elementwise operators of three operands that are composed of others."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.composite.elementwise.scalars import number_beside
from plugrad.ops.composite.indexing import nonzero_as_tuple
from plugrad.ops.prepare import pointwise_ternary as prepare
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import result_type

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def clip(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return F.clamp(self, min, max)


def clip_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return self.clamp_(min, max)


def clamp(self: Tensor, min: Any, max: Any) -> Tensor:
    prepare.clamp(self, min, max)
    result = self if min is None else F.clamp_min(self, min)
    return result if max is None else F.clamp_max(result, max)


def clamp_min(self: Tensor, min: Any) -> Tensor:
    prepare.clamp_min(self, min)
    return F.maximum(self, min if isinstance(min, TensorBase) else number_beside(self, min))


def clamp_max(self: Tensor, max: Any) -> Tensor:
    prepare.clamp_max(self, max)
    return F.minimum(self, max if isinstance(max, TensorBase) else number_beside(self, max))


def where_other_number(condition: Tensor, self: Tensor, other: Any) -> Tensor:
    return F.where(condition, self, number_beside(self, other))


def where_number_other(condition: Tensor, self: Any, other: Tensor) -> Tensor:
    return F.where(condition, number_beside(other, self), other)


def where_nonzero(condition: Tensor) -> Any:
    return nonzero_as_tuple(condition, True)


def where_numbers(condition: Tensor, self: Any, other: Any) -> Tensor:
    dtype = result_type(self, other)
    device = condition.device
    first = F.full((), self, dtype=dtype, device=device)
    return F.where(condition, first, F.full((), other, dtype=dtype, device=device))


def lerp(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    prepare.lerp(self, end, weight)
    return self + (end - self) * weight


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Tensor:
    checked: Any = prepare.addcmul(self, tensor1, tensor2, value)
    start, first, second, factor = checked
    product = F.mul(first, second)
    return F.add(start, product if factor == 1 else product * factor)


def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Tensor:
    checked: Any = prepare.addcdiv(self, tensor1, tensor2, value)
    start, first, second, factor = checked
    quotient = F.div(first, second)
    return F.add(start, quotient if factor == 1 else quotient * factor)
