"""Arguments of loss functions, checked in PyTorch's words."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, DType, bool_, int64, uint8
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.promotion import can_cast, promote_pair, to_dtype


def check_reduction(reduction: str) -> None:
    if reduction != "mean" and reduction != "sum" and reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")


def nll_loss_forward(
    self: TensorBase,
    target: TensorBase,
    weight: TensorBase | None,
    reduction: str,
    ignore_index: int,
) -> tuple[object, ...]:
    check_reduction(reduction)
    shape = sizes_of(self)
    if target.dtype is not int64 and target.dtype is not uint8:
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}"
        )
    classes = shape[1] if len(shape) > 1 else shape[0]
    if self.dtype.category != FLOATING:
        check_real_floating("nll_loss_out_frame", self.dtype)
    if weight is not None:
        check_class_weight(weight, classes, self.dtype)
    return (self, to_dtype(target, int64), weight, reduction, ignore_index)


def check_class_weight(weight: TensorBase, classes: int, dtype: DType) -> None:
    if sizes_of(weight) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(sizes_of(weight))}"
        )
    if weight.dtype is not dtype:
        raise RuntimeError(
            f"expected scalar type {dtype.scalar_name} but found {weight.dtype.scalar_name}"
        )


def mse_loss(self: TensorBase, target: TensorBase, reduction: str) -> tuple[object, ...]:
    check_reduction(reduction)
    broadcast_shapes(sizes_of(self), sizes_of(target))
    dtype = promote_pair(self, target)
    check_real_floating("mse_cpu", dtype)
    return (to_dtype(self, dtype), to_dtype(target, dtype), reduction)


def mse_loss_backward(
    grad_output: TensorBase, self: TensorBase, target: TensorBase, reduction: str
) -> tuple[object, ...]:
    if grad_output.dtype is self.dtype and self.dtype is target.dtype:
        return (grad_output, self, target, reduction)
    dtype = promote_pair(self, target)
    self, target = to_dtype(self, dtype), to_dtype(target, dtype)
    return (to_dtype(grad_output, promote_pair(grad_output, self)), self, target, reduction)


def binary_cross_entropy(
    self: TensorBase, target: TensorBase, weight: TensorBase | None, reduction: str
) -> tuple[object, ...]:
    check_reduction(reduction)
    if sizes_of(self) != sizes_of(target):
        raise ValueError(
            f"Using a target size (plugrad.Size({list(sizes_of(target))})) that is different to "
            f"the input size (plugrad.Size({list(sizes_of(self))})) is deprecated. Please ensure "
            "they have the same size."
        )
    if target.dtype is not self.dtype:
        raise RuntimeError(
            f"Found dtype {target.dtype.scalar_name} but expected {self.dtype.scalar_name}"
        )
    check_real_floating("binary_cross_entropy", self.dtype)
    if weight is not None:
        # Losses are weighted in place, so they keep their dtype.
        _check_cast(weight.dtype, self.dtype)
        weight = to_dtype(weight, self.dtype)
    return (self, target, weight, reduction)


def _check_cast(given: DType, wanted: DType) -> None:
    if not can_cast(given, wanted):
        raise RuntimeError(
            f"result type {given.scalar_name} can't be cast to the desired output type "
            f"{wanted.scalar_name}"
        )


def binary_cross_entropy_with_logits(
    self: TensorBase,
    target: TensorBase,
    weight: TensorBase | None,
    pos_weight: TensorBase | None,
    reduction: str,
) -> tuple[object, ...]:
    check_reduction(reduction)
    if sizes_of(self) != sizes_of(target):
        raise ValueError(
            f"Target size (plugrad.Size({list(sizes_of(target))})) must be the same as input size "
            f"(plugrad.Size({list(sizes_of(self))}))"
        )
    dtype = promote_pair(self, target)
    factors: list[Any] = []
    for factor in (weight, pos_weight):
        if factor is not None:
            broadcast_shapes(sizes_of(self), sizes_of(factor))
        factors.append(factor)
    if pos_weight is not None and pos_weight.dtype is bool_:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    _check_cast(dtype, target.dtype)
    if self.dtype.category < FLOATING:
        raise not_implemented("log_sigmoid_cpu", self.dtype)
    # As in PyTorch, where the losses begin as 1 - target, they have its dtype.
    dtype = target.dtype
    for factor in factors:
        if factor is not None:
            _check_cast(factor.dtype, dtype)
    cast = [None if factor is None else to_dtype(factor, dtype) for factor in factors]
    return (to_dtype(self, dtype), to_dtype(target, dtype), cast[0], cast[1], reduction)
