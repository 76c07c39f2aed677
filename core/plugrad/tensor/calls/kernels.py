"""From raw kernels on arrays to kernels on tensors: unwrap, promote, call, wrap.

These are what stands in an operator's table for a backend. `UnaryKernel` and `BinaryKernel` serve
operators whose YAML entry says so and take the short way when all dtypes agree; `RawKernel`
serves all others, with the entry's `prepare` in front.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, final

import numpy as np
from mypy_extensions import i64

from plugrad.device import CPU, Device
from plugrad.dispatch.backends.active import (
    ActiveBackend,
    canonical_device,
    generator_of,
    queue_of,
)
from plugrad.dispatch.backends.backend import Backend, class_name
from plugrad.dispatch.backends.candidates import VariantChoice
from plugrad.dispatch.backends.kernel_context import InContext, call_few, is_busy
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.dtype import FLOATING, DType, bool_, float32
from plugrad.return_types import result_type_of
from plugrad.tensor.base import TensorBase, make_tensor, ndim_of, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes as broadcast_shapes
from plugrad.tensor.calls.kernel_failures import explained
from plugrad.tensor.calls.kernel_results import (
    ArrayCheck,
    check_like_meta,
    is_foreign,
    run_next,
)
from plugrad.tensor.calls.promotion import (
    cast_array,
    check_scalar_fits,
    float_result,
    promote_pair,
    promote_with_scalar,
    to_dtype,
)
from plugrad.tensor.calls.schema_facts import position_of, returns_one_tensor, takes_one_tensor
from plugrad.tensor.creation.transfer import moved_array

PROMOTE: Final = 0
FLOAT: Final = 1
BOOL_RESULT: Final = 2
REAL: Final = 3
# Beside 16-bit floats, a second operand that is a number is not rounded to 16 bits here; elsewhere
# it is, in PyTorch too.
KEEPS_NUMBER: Final = ("mul", "div", "floor_divide")
_RESULTS: Final = {"promote": PROMOTE, "float": FLOAT, "bool": BOOL_RESULT, "real": REAL}


def raise_device_mismatch(a: Device, b: Device) -> NoReturn:
    """PyTorch's error for operands of an elementwise operator: it names what is no CPU first."""
    if a.is_host and not b.is_host:
        a, b = b, a
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{a} and {b}!"
    )


def _array_for(tensor: TensorBase, dtype: DType, device: Device) -> Any:
    """A tensor's array in another dtype, and on another device if it has but one element there."""
    if tensor.device is not device:
        # Cast before the move: the device may not have the former dtype.
        return moved_array(to_dtype(tensor, dtype), device, False, False)
    if tensor.dtype is not dtype:
        return cast_array(tensor._backend_array, device.type, dtype, device.index or 0)
    return tensor._backend_array


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


def fail(op: Operator, args: tuple[Any, ...], error: Exception) -> NoReturn:
    """Raise what a kernel raised, or what PyTorch says of it."""
    found: Exception | None = explained(op, args, error)
    if found is not None:
        raise found from None
    raise error


def run_again_or_fail(
    op: Operator,
    context: InContext | None,
    arrays: tuple[Any, ...],
    args: tuple[Any, ...],
    error: Exception,
) -> Any:
    """Run a kernel whose context could not be entered; raise any other error as `fail` does."""
    if context is not None and is_busy(error):
        try:
            return context.run_in_copy(arrays)
        except Exception as its_own:
            error = its_own
    fail(op, args, error)


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
            out = run_again_or_fail(self.op, context, (array,), (a,), error)
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

    A `prepare` given for such an operator only checks: it sees what the user gave, before
    promotion, and is not asked about two tensors of one floating point dtype.
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
            x = _array_for(tensor, float32, device)
            return to_dtype(self._finish(a, b, x, b, alpha, float32, device), dtype)
        array = _array_for(tensor, dtype, device)
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
                # No need to ask the array of the result what its shape is, which takes longer than
                # to ask once one that is used again and again.
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
            x = _array_for(a, float32, device)
            y = _array_for(b, float32, device)
            return to_dtype(self._finish(a, b, x, y, alpha, float32, device), dtype)
        x = _array_for(a, dtype, device)
        y = _array_for(b, dtype, device)
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
        raise_device_mismatch(a.device, b.device)

    def _run_again(self, a: Any, b: Any, x: Any, y: Any, error: Exception) -> Any:
        if self.context is not None and is_busy(error):
            try:
                return self.context.run_in_copy((x, y))
            except Exception as its_own:
                error = its_own
        return self._explain(a, b, error)

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
    """What two operands, of which one may be a number, broadcast to."""
    if not isinstance(a, TensorBase):
        return sizes_of(b)
    left = sizes_of(a)
    if not isinstance(b, TensorBase):
        return left
    right = sizes_of(b)
    return left if left is right or left == right else broadcast_shapes(left, right)


ONE: Final[object] = 1


@final
class RawKernel:
    """Any other operator: `prepare`, unwrap every argument, call, wrap what comes back."""

    def __init__(
        self, op: Operator, active: ActiveBackend, raw: Any, registered: bool = False
    ) -> None:
        self.op = op
        self.active = active
        self.backend: Backend = active.backend
        self.registered = registered
        self.array_type: Any = active.array_type
        self.tensor_keyset: i64 = active.tensor_keyset
        self.raw: Any = raw
        self.context: InContext | None = raw if isinstance(raw, InContext) else None
        self.choice: VariantChoice | None = raw if isinstance(raw, VariantChoice) else None
        self.prepare: Any = op.prepare
        self.inplace: bool = op.schema.is_inplace
        self.generator_position: int = position_of(op, "Generator")
        self.device_position: int = position_of(op, "Device")
        self.result_type: Any = result_type_of(op)
        self.foreign: bool = is_foreign(op, active, registered)
        # The dtypes with which somebody else's kernel was checked, and the last one.
        self.checked: set[DType] = set()
        self.last_checked: Any = None
        self.is_single: bool = returns_one_tensor(op)
        # Whether the first argument tells the device, being the only tensor.
        self.first_only: bool = self.device_position < 0 and takes_one_tensor(op)
        # What the last result's native dtype meant; asking the backend takes a method call.
        self.last_native: Any = None
        self.last_dtype: DType = bool_
        # The last dtype among the arguments, and what it is natively.
        self.asked: tuple[Any, Any] = (None, None)

    def __call__(self, keyset: i64, *args: Any) -> Any:
        return self.compute(args)

    def compute(self, args: tuple[Any, ...]) -> Any:
        """Run the raw kernel on all arguments, in schema order."""
        if self.first_only:
            first: TensorBase = args[0]
            return self.compute_on(first.device, args)
        return self.compute_on(self._device(args), args)

    def compute_on(self, device: Device, args: tuple[Any, ...]) -> Any:
        """`compute`, on a device that is known already."""
        given_args = args
        if self.generator_position >= 0:
            if not device.is_host and self._drawn_on_host(device):
                return run_next(self.op, self.active, self.raw, self.registered, args)
            generator = generator_of(device)
            if args[self.generator_position] is None:
                completed = list(args)
                completed[self.generator_position] = generator
                args = tuple(completed)
            else:
                _check_generator(args[self.generator_position], generator)
        prepare = self.prepare  # called as an attribute, it would be looked up by name
        prepared = args
        if prepare is not None:
            try:
                answer: Any = prepare(*args)
            except Exception as error:
                fail(self.op, args, error)
            if answer is DECLINED:
                return run_next(self.op, self.active, self.raw, self.registered, given_args)
            prepared = answer if type(answer) is tuple else tuple(answer)
        # Most kernels have few arguments, and no tuple is made for those.
        count = len(prepared)
        few = 0 < count <= 5
        arrays = () if few else self._unwrap_all(prepared, device)
        first = self._unwrap(prepared[0], device) if few else None
        second = self._unwrap(prepared[1], device) if few and count > 1 else None
        third = self._unwrap(prepared[2], device) if few and count > 2 else None
        fourth = self._unwrap(prepared[3], device) if few and count > 3 else None
        fifth = self._unwrap(prepared[4], device) if few and count > 4 else None
        try:
            if few:
                out = self._call(count, first, second, third, fourth, fifth)
            else:
                out = self._call_with(arrays)
        except Exception as error:
            arrays = self._unwrap_all(prepared, device)
            out = run_again_or_fail(self.op, self.context, arrays, args, error)
        if out is DECLINED:
            return run_next(self.op, self.active, self.raw, self.registered, given_args)
        if self.inplace:
            return args[0]
        result = self._wrap(out, device) if self.is_single else self._wrap_all(out, device)
        if self.foreign:
            given: Any = args[0] if args else None
            if not isinstance(given, TensorBase):
                check_like_meta(self.op, self.active, self.checked, args, result)
            elif given.dtype is not self.last_checked:
                check_like_meta(self.op, self.active, self.checked, args, result)
                self.last_checked = given.dtype
        return result

    def _call(
        self, count: i64, first: Any, second: Any, third: Any, fourth: Any, fifth: Any
    ) -> Any:
        choice = self.choice
        if choice is not None:
            return choice.compute_few(count, first, second, third, fourth, fifth)
        return call_few(self.raw, count, first, second, third, fourth, fifth)

    def _call_with(self, arrays: tuple[Any, ...]) -> Any:
        if self.choice is not None:
            return self.choice.compute(arrays)
        # Called as an attribute, it would be looked up by name.
        run = self.raw if self.context is None else self.context.run
        return run(*arrays) if self.context is None else run(self.context.kernel, *arrays)

    def _drawn_on_host(self, device: Device) -> bool:
        """Whether the operator's decomposition draws on the CPU: see `use_host_numbers`."""
        if not current_state().host_numbers or device.type == "meta":
            return False
        if queue_of(device).is_bound():
            raise RuntimeError(
                "plugrad.random.use_host_numbers() draws random numbers on the host: not in a "
                "function that is traced"
            )
        return self.op.namespace == "plugrad"

    def _device(self, args: tuple[Any, ...]) -> Device:
        """The device of the tensors, or the one asked for where there are none.

        Raises:
            RuntimeError: they are on several, and it is no 0-dim tensor on the CPU, nor an index
                tensor there, that is on another one.
        """
        found: Device | None = None
        first: TensorBase | None = None
        for position, value in enumerate(args):
            if isinstance(value, TensorBase):
                if found is None:
                    found = value.device
                    first = value
                elif value.device is not found:
                    if first is not None and found is CPU and ndim_of(first) == 0:
                        found = value.device
                        first = value
                    elif ndim_of(value) != 0 or value.device is not CPU:
                        self._mixed(position, value.device, found)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    if isinstance(item, TensorBase):
                        if found is None:
                            found = item.device
                        elif item.device is not found:
                            self._check_item(position, item.device, found)
        if self.device_position >= 0 and args[self.device_position] is not None:
            return canonical_device(args[self.device_position])
        if found is None:
            return canonical_device(None)
        return found

    def _check_item(self, position: int, device: Device, common: Device) -> None:
        """Of several tensors in one argument, only indices may be on the CPU instead."""
        if not self.op.schema.arguments[position].type.element_optional:
            self._mixed(position, device, common)
        if device is not CPU:
            raise RuntimeError(
                "indices should be either on cpu or on the same device as the indexed tensor "
                f"({common})"
            )

    def _mixed(self, position: int, device: Device, common: Device) -> NoReturn:
        argument = self.op.schema.arguments[position].name
        if self.op.structure:
            raise_device_mismatch(common, device)
        if argument == "mask" and self.op.name.startswith("masked_fill"):
            raise RuntimeError(
                f"expected self and mask to be on the same device, but got mask on {device} and "
                f"self on {common}"
            )
        name = self.op.full_name.replace(".", "_")
        raise RuntimeError(
            "Expected all tensors to be on the same device, but got "
            f"{argument} is on {device}, different from other "
            f"tensors on {common} (when checking argument in method "
            f"wrapper_{self.active.key_name}_{name})"
        )

    def _unwrap_all(self, values: tuple[Any, ...], device: Device) -> tuple[Any, ...]:
        return tuple([self._unwrap(value, device) for value in values])

    def _unwrap(self, value: Any, device: Device) -> Any:
        if isinstance(value, TensorBase):
            if value.device is not device and self.device_position < 0:
                return _array_for(value, value.dtype, device)
            return value._backend_array
        if isinstance(value, (list, tuple)):
            # Sizes and dimensions are all of one kind: a look at the first tells most lists apart.
            if not value or type(value[0]) is int:
                return value
            for item in value:
                if isinstance(item, TensorBase):
                    return [self._unwrap(element, device) for element in value]
            return value
        if isinstance(value, DType):
            known = self.asked
            if known[0] is not value:
                known = (value, self.backend.native_dtype(value))
                self.asked = known
            return known[1]
        if isinstance(value, Device):
            return value.index or 0
        return value

    def _wrap(self, out: Any, device: Device) -> TensorBase:
        array = out
        if type(out) is not self.array_type:
            if isinstance(out, (tuple, list)):
                raise self._unlike(f"a {type(out).__name__} of {len(out)}: expected one array")
            array = self.active.taken(out, self.op.qualified_name)
        native = array.dtype
        if native is not self.last_native:
            self.last_dtype = self.backend.dtype_of(array)
            self.last_native = native
        return make_tensor(array, self.last_dtype, device, self.tensor_keyset)

    def _wrap_all(self, out: Any, device: Device) -> Any:
        """What is no single array: several, a list of them, or a Python value."""
        returns = self.op.schema.returns
        if len(returns) > 1:
            if not isinstance(out, (tuple, list)) or len(out) != len(returns):
                count = f" of {len(out)}" if isinstance(out, (tuple, list)) else ""
                got = class_name(type(out)) + count
                raise self._unlike(f"{got}: expected a tuple of {len(returns)} arrays")
            # Gradients that nobody wants may be None.
            items: list[Any] = []
            for given in out:
                items.append(None if given is None else self._wrap(given, device))  # noqa: PERF401
            result_type = self.result_type
            return tuple(items) if result_type is None else result_type(*items)
        if not returns or returns[0].type.base != "Tensor":
            return out
        if returns[0].type.is_list:
            if not isinstance(out, (tuple, list)):
                raise self._unlike(f"{class_name(type(out))}: expected a list of arrays")
            return [self._wrap(item, device) for item in out]
        return None if out is None else self._wrap(out, device)

    def _unlike(self, what: str) -> TypeError:
        return self.active.returned(self.op.qualified_name, what)


def _check_generator(given: Any, expected: Any) -> None:
    """RuntimeError if a generator is another device type's than the device's own one."""
    found: Any = getattr(given, "device", None)
    wanted: Any = getattr(expected, "device", None)
    if found is not None and wanted is not None and found.type != wanted.type:
        raise RuntimeError(
            f"Expected a '{wanted.type}' device type for generator but found '{found.type}'"
        )
