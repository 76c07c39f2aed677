"""Makes kernels on tensors from kernels on arrays: prepare, unwrap, call, wrap.

An operator's table has these for a backend, except for elementwise operators with one or two
operands (`elementwise_kernels`).
"""

from __future__ import annotations

from typing import Any, NoReturn, final

from mypy_extensions import i64

from plugrad._intrinsics import array_dtype
from plugrad.device import CPU, Device
from plugrad.dispatch.backends.active import (
    ActiveBackend,
    canonical_device,
    generator_of,
    queue_of,
)
from plugrad.dispatch.backends.backend import Backend, class_name
from plugrad.dispatch.backends.candidates import VariantChoice
from plugrad.dispatch.backends.kernel_context import InContext, call_few
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.dtype import DType, bool_
from plugrad.return_types import result_type_of
from plugrad.tensor.base import TensorBase, make_tensor, ndim_of
from plugrad.tensor.calls.kernel_failures import fail, run_again_or_fail
from plugrad.tensor.calls.kernel_results import check_like_meta, is_foreign, run_next
from plugrad.tensor.calls.operands import array_for, device_mismatch
from plugrad.tensor.calls.schema_facts import position_of, returns_one_tensor, takes_one_tensor


@final
class RawKernel:
    """Any other operator: `prepare`, unwrap every argument, call, wrap the results."""

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
        # The dtypes with which another package's kernel was checked, and the last one.
        self.checked: set[DType] = set()
        self.last_checked: Any = None
        self.is_single: bool = returns_one_tensor(op)
        # Whether the first argument determines the device, because it is the only tensor.
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
        """`compute`, with the device determined already."""
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
            out = run_again_or_fail(self.op, self.active, self.raw, arrays, args, error)
        if out is DECLINED:
            return run_next(self.op, self.active, self.raw, self.registered, given_args)
        if self.inplace:
            return args[0]
        result = self._wrap(out, device) if self.is_single else self._wrap_all(out, device)
        if self.foreign:
            given: Any = args[0] if args else None
            if type(given) is list and given:
                given = given[0]
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
        """The device of the tensors, or the requested one if there are none.

        Raises:
            RuntimeError: they are on several devices, except for 0-dim tensors and index tensors on
                the CPU.
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
                # A loop over a list is native.
                items = value if isinstance(value, list) else list(value)
                for item in items:
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
        """If an argument has several tensors, only indices may be on the CPU instead."""
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
            raise device_mismatch(common, device)
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
        if value is None or type(value) is int:
            return value
        if isinstance(value, TensorBase):
            if value.device is not device and self.device_position < 0:
                return array_for(value, value.dtype, device)
            return value._backend_array
        if isinstance(value, (list, tuple)):
            # Sizes and dimensions all have one type, so the first item distinguishes most lists.
            if not value or type(value[0]) is int:
                return value
            items = value if isinstance(value, list) else list(value)
            for item in items:
                if isinstance(item, TensorBase):
                    return [self._unwrap(element, device) for element in items]
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
        native = array_dtype(array)
        if native is not self.last_native:
            self.last_dtype = self.backend.dtype_of(array)
            self.last_native = native
        return make_tensor(array, self.last_dtype, device, self.tensor_keyset)

    def _wrap_all(self, out: Any, device: Device) -> Any:
        """What is not a single array: several, a list of them, or a Python value."""
        returns = self.op.schema.returns
        if len(returns) > 1:
            if not isinstance(out, (tuple, list)) or len(out) != len(returns):
                count = f" of {len(out)}" if isinstance(out, (tuple, list)) else ""
                got = class_name(type(out)) + count
                raise self._unlike(f"{got}: expected a tuple of {len(returns)} arrays")
            # Gradients that are not needed may be None.
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
