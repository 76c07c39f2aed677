"""Makes kernels on tensors from kernels on arrays, for elementwise operators of one or two
operands.

A YAML entry selects them for its operator. They take a fast path if all dtypes agree.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, final

import numpy as np
from mypy_extensions import i64

from plugrad.device import Device
from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.candidates import VariantChoice
from plugrad.dispatch.backends.kernel_context import InContext
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.operator import Operator
from plugrad.dtype import FLOATING, DType, bool_, float32
from plugrad.tensor.base import TensorBase, make_tensor, ndim_of, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.kernel_failures import explained, run_again, run_again_or_fail
from plugrad.tensor.calls.kernel_results import ArrayCheck, is_foreign, run_next
from plugrad.tensor.calls.operands import array_for, device_mismatch
from plugrad.tensor.calls.promotion import (
    cast_array,
    check_scalar_fits,
    float_result,
    promote_pair,
    promote_with_scalar,
    to_dtype,
)

PROMOTE: Final = 0
FLOAT: Final = 1
BOOL_RESULT: Final = 2
REAL: Final = 3
# Beside 16-bit floats, a second operand that is a number is not rounded to 16 bits here; elsewhere
# it is, in PyTorch too.
KEEPS_NUMBER: Final = ("mul", "div", "floor_divide")
_RESULTS: Final = {"promote": PROMOTE, "float": FLOAT, "bool": BOOL_RESULT, "real": REAL}
ONE: Final[object] = 1


def _is_narrow(dtype: DType) -> bool:
    """Whether it is a 16-bit float's."""
    return dtype.itemsize == 2 and dtype.category == FLOATING


def check_alpha(alpha: Any, dtype: DType) -> None:
    """RuntimeError in PyTorch's words if a factor is of a higher kind than the result."""
    if isinstance(alpha, bool) and dtype is not bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and dtype.category < FLOATING:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if isinstance(alpha, complex) and not dtype.is_complex:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    check_scalar_fits(alpha, dtype)


@final
class UnaryKernel:
    """An elementwise operator of one tensor."""

    def __init__(
        self, op: Operator, active: ActiveBackend, raw: Any, registered: bool = False
    ) -> None:
        self.op = op
        self.active = active
        self.backend: Backend = active.backend
        self.registered = registered
        self.foreign: bool = is_foreign(op, active, registered)
        self.result_check: ArrayCheck | None = ArrayCheck(op, active) if self.foreign else None
        self.array_type: Any = active.array_type
        self.tensor_keyset: i64 = active.tensor_keyset
        self.raw: Any = raw
        self.context: InContext | None = raw if isinstance(raw, InContext) else None
        self.choice: VariantChoice | None = raw if isinstance(raw, VariantChoice) else None
        self.result: int = _RESULTS[op.result]

    def __call__(self, keyset: i64, a: TensorBase) -> TensorBase:
        return self.compute(a)

    def compute(self, a: TensorBase) -> TensorBase:
        dtype = a.dtype
        array = a._backend_array
        if self.result == FLOAT and dtype.category < FLOATING:
            dtype = float_result(dtype)
            array = cast_array(array, a.device.type, dtype, a.device.index or 0)
        context = self.context
        choice = self.choice
        try:
            if choice is not None:
                out = choice.compute_few(1, array, None, None, None, None)
            else:
                out = self.raw(array) if context is None else context.run(context.kernel, array)
        except Exception as error:
            out = run_again_or_fail(self.op, self.active, self.raw, (array,), (a,), error)
        if self.result == BOOL_RESULT:
            dtype = bool_
        elif self.result == REAL:
            dtype = dtype.to_real()
        if type(out) is not self.array_type:
            if out is DECLINED:
                declined: TensorBase = run_next(
                    self.op, self.active, self.raw, self.registered, (a,)
                )
                return declined
            out = self.active.taken(out, self.op.qualified_name)
        result = make_tensor(out, dtype, a.device, self.tensor_keyset)
        if self.result_check is not None:
            sizes = sizes_of(a)
            self.result_check.look_at(out, dtype, sizes)
            result._known_sizes = sizes
        return result


@final
class BinaryKernel:
    """An elementwise operator of two tensors, or of a tensor and a number on either side.

    A `prepare` given for such an operator only checks: it gets the user's arguments, before
    promotion, and is skipped for two tensors of one floating point dtype.
    """

    def __init__(
        self, op: Operator, active: ActiveBackend, raw: Any, registered: bool = False
    ) -> None:
        self.op = op
        self.active = active
        self.backend: Backend = active.backend
        self.registered = registered
        self.foreign: bool = is_foreign(op, active, registered)
        self.result_check: ArrayCheck | None = ArrayCheck(op, active) if self.foreign else None
        self.array_type: Any = active.array_type
        self.tensor_keyset: i64 = active.tensor_keyset
        self.raw: Any = raw
        self.context: InContext | None = raw if isinstance(raw, InContext) else None
        self.choice: VariantChoice | None = raw if isinstance(raw, VariantChoice) else None
        plain = raw.rest if isinstance(raw, VariantChoice) else raw
        self.broadcasts: bool = isinstance(plain, (InContext, np.ufunc))
        self.result: int = _RESULTS[op.result]
        # Where the backend multiplies arrays only, a factor is made one.
        self.scale: Any = active.raw_kernel("mul", "Scalar")
        self.multiply: Any = active.raw_kernel("mul", "Tensor")
        self.check: Any = op.prepare
        self.keeps_number: bool = op.name in KEEPS_NUMBER

    def __call__(self, keyset: i64, a: Any, b: Any, alpha: Any = 1) -> TensorBase:
        return self.compute(a, b, alpha)

    def compute(self, a: Any, b: Any, alpha: Any = 1) -> TensorBase:
        """Two tensors, or a tensor and a number on either side."""
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            return self.compute_tensors(a, b, alpha)
        tensor: TensorBase = a if isinstance(a, TensorBase) else b
        number = b if tensor is a else a
        if self.check is not None:
            self.check(a, b, alpha)
        device = tensor.device
        dtype = promote_with_scalar(tensor, number)
        if self.result == FLOAT:
            dtype = float_result(dtype)
        if self.keeps_number and dtype.itemsize == 2 and tensor is a and _is_narrow(dtype):
            x = array_for(tensor, float32, device)
            return to_dtype(self._finish(a, b, x, b, alpha, float32, device), dtype)
        array = array_for(tensor, dtype, device)
        if tensor is a:
            return self._finish(a, b, array, b, alpha, dtype, device)
        return self._finish(a, b, a, array, alpha, dtype, device)

    def compute_tensors(self, a: TensorBase, b: TensorBase, alpha: Any = 1) -> TensorBase:
        """Two tensors; at once if nothing has to be promoted."""
        dtype = a.dtype
        device = a.device
        if dtype is b.dtype and device is b.device and dtype.category >= FLOATING:
            out = self._finish(a, b, a._backend_array, b._backend_array, alpha, dtype, device)
            if self.broadcasts and out._known_sizes is None:
                # Reading the shape from the result's array would take longer than from an operand,
                # which caches it.
                left, right = a._known_sizes, b._known_sizes
                if left is None:
                    if right is not None:
                        left = sizes_of(a)
                elif right is None:
                    right = sizes_of(b)
                if left is not None and (left is right or left == right):
                    out._known_sizes = left
            return out
        if self.check is not None:
            self.check(a, b, alpha)
        dtype = promote_pair(a, b)
        if self.result == FLOAT:
            dtype = float_result(dtype)
        if device is not b.device:
            device = self._common_device(a, b)
        if self.keeps_number and _is_narrow(dtype) and ndim_of(b) == 0:
            x = array_for(a, float32, device)
            y = array_for(b, float32, device)
            return to_dtype(self._finish(a, b, x, y, alpha, float32, device), dtype)
        x = array_for(a, dtype, device)
        y = array_for(b, dtype, device)
        return self._finish(a, b, x, y, alpha, dtype, device)

    def _finish(
        self, a: Any, b: Any, x: Any, y: Any, alpha: Any, dtype: DType, device: Device
    ) -> TensorBase:
        if alpha is not ONE:
            check_alpha(alpha, dtype)
        if alpha is not ONE and alpha != 1:
            if _is_narrow(dtype):
                return self._scaled_in_float32(a, b, x, y, alpha, dtype, device)
            y = y * alpha if isinstance(y, (int, float, complex)) else self._times(y, alpha, device)
        context = self.context
        choice = self.choice
        try:
            if choice is not None:
                out = choice.compute_few(2, x, y, None, None, None)
            else:
                out = self.raw(x, y) if context is None else context.run(context.kernel, x, y)
        except Exception as error:
            out = self._run_again(a, b, x, y, error)
        if self.result == BOOL_RESULT:
            dtype = bool_
        if type(out) is not self.array_type:
            if out is DECLINED:
                return self._decline(a, b, alpha)
            out = self.active.taken(out, self.op.qualified_name)
        result = make_tensor(out, dtype, device, self.tensor_keyset)
        if self.result_check is not None:
            sizes = _sizes_of_pair(a, b)
            self.result_check.look_at(out, dtype, sizes)
            result._known_sizes = sizes
        return result

    def _scaled_in_float32(
        self, a: Any, b: Any, x: Any, y: Any, alpha: Any, dtype: DType, device: Device
    ) -> TensorBase:
        """With a factor, 16-bit floats are rounded once, and numbers before, as in PyTorch."""
        wide: list[Any] = []
        for operand in (x, y, alpha):
            if isinstance(operand, (int, float, complex)):
                wide.append(float(np.array(operand).astype(dtype.numpy)))
            else:
                wide.append(cast_array(operand, device.type, float32, device.index or 0))
        factor: Any = wide[2]
        return to_dtype(self._finish(a, b, wide[0], wide[1], factor, float32, device), dtype)

    def _decline(self, a: Any, b: Any, alpha: Any) -> TensorBase:
        args = (a, b, alpha) if len(self.op.schema.arguments) > 2 else (a, b)
        found: TensorBase = run_next(self.op, self.active, self.raw, self.registered, args)
        return found

    def _times(self, array: Any, number: Any, device: Device) -> Any:
        if self.scale is not None:
            out = self.scale(array, number)
            if out is not DECLINED:
                return self.active.taken(out, "plugrad::mul.Scalar")
        dtype = self.backend.dtype_of(array)
        factor = self.backend.from_host(np.array(number).astype(dtype.numpy), device.index or 0)
        return self.active.taken(self.multiply(array, factor), "plugrad::mul.Tensor")

    def _common_device(self, a: TensorBase, b: TensorBase) -> Device:
        """A 0-dim tensor on the host may meet any device."""
        if b.device.type == "cpu" and ndim_of(b) == 0:
            return a.device
        if a.device.type == "cpu" and ndim_of(a) == 0:
            return b.device
        raise device_mismatch(a.device, b.device)

    def _run_again(self, a: Any, b: Any, x: Any, y: Any, error: Exception) -> Any:
        try:
            return run_again(self.active, self.raw, (x, y), error)
        except Exception as its_own:
            return self._explain(a, b, its_own)

    def _explain(self, a: Any, b: Any, error: Exception) -> NoReturn:
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            broadcast_shapes(sizes_of(a), sizes_of(b))
        if isinstance(error, (RuntimeError, IndexError, NotImplementedError, ZeroDivisionError)):
            raise error
        found: Exception | None = explained(self.op, (a, b), error)
        if found is not None:
            raise found from None
        raise RuntimeError(f"{self.op.qualified_name}: {error}") from error


def _sizes_of_pair(a: Any, b: Any) -> tuple[int, ...]:
    """The broadcast shape of two operands; one may be a number."""
    if not isinstance(a, TensorBase):
        return sizes_of(b)
    left = sizes_of(a)
    if not isinstance(b, TensorBase):
        return left
    right = sizes_of(b)
    return left if left is right or left == right else broadcast_shapes(left, right)
