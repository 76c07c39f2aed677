"""Turns a call of an operator into calls of kernels on arrays, and does the work of its wrapper in
advance.

Wrappers of kernels check and promote arguments, and determine the result's dtype and shape. That
depends only on shapes, dtypes and devices, which are fixed for a captured step. If a wrapper does
anything else, the call stays a call of the kernel on tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from plugrad.dispatch.backends.active import ActiveBackend, generator_of
from plugrad.dispatch.backends.candidates import Lowered
from plugrad.dispatch.backends.kernel_context import InContext
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.operator import Operator
from plugrad.dtype import FLOATING
from plugrad.plugins.tracing import Listener, listening
from plugrad.tensor.aliasing.alias_kernels import CopyKernel, InplaceKernel
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.elementwise_kernels import BinaryKernel, UnaryKernel
from plugrad.tensor.calls.kernels import RawKernel
from plugrad.tensor.calls.promotion import float_result, promote_with_scalar
from plugrad.transforms.capture.node import Ref
from plugrad.transforms.lowering.numbers import Followed

FLOAT_RESULT: Final = 1


@dataclass(frozen=True)
class Product:
    """Among arguments: the product of two numbers; the program has one of them."""

    left: Any
    right: Any


@dataclass(frozen=True)
class Call:
    """One call of a function on arrays.

    Attributes:
        function: a kernel on arrays.
        arguments: a `Ref` for an array, and for a number that is followed; `TEMPORARY` for the
            result of the call before.
        writes: whether it writes to its first argument; its result is ignored.
        context: the context that it runs in, or None.
        into: whether the last argument is passed as `out`.
        otherwise: the call to make if the function declines, or None.
        takes_out: whether the function is known to take `out`.
        joins: the function that joins several such calls, see `Variant`; None if there is none.
    """

    function: Any
    arguments: tuple[Any, ...]
    writes: bool = False
    context: Any = None
    into: bool = False
    otherwise: Call | None = None
    takes_out: bool = False
    joins: Any = None


TEMPORARY: Final = Ref("temporary")


class Unlowered(Exception):  # no error: it means that the wrapper does more than call a kernel
    """The call has to be made on tensors."""


class _Ears(Listener):
    """Records whether operators are called or values are read."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = False

    def dispatch(self, kind: str, op: Any, keyset: int, args: tuple[object, ...]) -> Any:
        self.heard = True
        return super().dispatch(kind, op, keyset, args)

    def read(self, tensor: Any) -> None:
        self.heard = True


class Lowerer:
    """Lowers calls on one backend.

    Args:
        active: the backend.
        dense: the key set of its kernels.
    """

    def __init__(self, active: ActiveBackend, dense: int) -> None:
        self.active = active
        self.dense = dense

    def calls(self, op: Operator, refs: tuple[Any, ...], values: tuple[Any, ...]) -> list[Call]:
        """The calls of kernels; the last one's result is the operator's.

        Args:
            refs: the arguments with a `Ref` for each tensor and each number that is followed.
            values: the same with tensors and floats.

        Raises:
            Unlowered: there are none.
        """
        kernel = op.lookup(self.dense)
        if isinstance(kernel, (UnaryKernel, BinaryKernel, RawKernel)):
            self._check_owners(op, kernel)
        tensors = [value for value in values if isinstance(value, TensorBase)]
        if any(tensor.device is not tensors[0].device for tensor in tensors):
            raise Unlowered
        if isinstance(kernel, UnaryKernel):
            return self._unary(kernel, refs, values)
        if isinstance(kernel, BinaryKernel):
            return self._binary(kernel, refs, values)
        if isinstance(kernel, InplaceKernel):
            return self._inplace(kernel, refs, values)
        if isinstance(kernel, CopyKernel):
            return self._copy(refs, values)
        if isinstance(kernel, RawKernel):
            return [self._raw(kernel, refs, values)]
        raise Unlowered

    def _check_owners(self, op: Operator, kernel: UnaryKernel | BinaryKernel | RawKernel) -> None:
        """Somebody else's kernel, which `Tape` checks, may leave any call to the next one: that has
        to be among those that the call on arrays tries."""
        if not kernel.foreign:
            return
        found = self.active.candidates(op.kernel_name, op.overload)
        if kernel.registered or not any(each.own and each.variant is None for each in found):
            raise Unlowered

    def _call(self, raw: Any, *arguments: Any, writes: bool = False) -> Call:
        if isinstance(raw, InContext):
            return Call(raw.kernel, arguments, writes, raw.context)
        return Call(raw, arguments, writes)

    def _unary(self, kernel: UnaryKernel, refs: Any, values: Any) -> list[Call]:
        if kernel.result == FLOAT_RESULT and values[0].dtype.category < FLOATING:
            raise Unlowered
        return [self._call(kernel.raw, refs[0])]

    def _binary(self, kernel: BinaryKernel, refs: Any, values: Any) -> list[Call]:
        a, b = values[:2]
        alpha, factor = (values[2], refs[2]) if len(values) > 2 else (1, 1)
        first = a if isinstance(a, TensorBase) else b
        dtype = first.dtype
        if dtype.category < FLOATING or dtype.itemsize == 2:
            raise Unlowered
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            if a.dtype is not b.dtype:
                raise Unlowered
        else:
            number = b if first is a else a
            if type(number) not in (int, float, Followed):
                raise Unlowered
            if kernel.check is not None:
                self._check_ahead(kernel, a, b, alpha, number)
            if promote_with_scalar(first, number) is not dtype:
                raise Unlowered
            if kernel.result == FLOAT_RESULT and float_result(dtype) is not dtype:
                raise Unlowered
        if _is_one(alpha):
            return [self._call(kernel.raw, refs[0], refs[1])]
        return self._scaled(kernel.raw, kernel.scale, refs, values, factor, False)

    @staticmethod
    def _check_ahead(kernel: BinaryKernel, a: Any, b: Any, alpha: Any, number: Any) -> None:
        """Call `prepare`, which only checks. It has to see each value of a followed number."""
        if type(number) is Followed or type(alpha) is Followed:
            raise Unlowered
        ears = _Ears()
        with listening(ears):
            try:
                kernel.check(a, b, alpha)
            except Exception as error:
                raise Unlowered from error
        if ears.heard:
            raise Unlowered

    def _scaled(
        self, raw: Any, scale: Any, refs: Any, values: Any, factor: Any, writes: bool
    ) -> list[Call]:
        """`raw(a, alpha * b)`"""
        alpha = values[2]
        if type(alpha) not in (int, float, Followed):
            raise Unlowered
        if not isinstance(values[1], TensorBase):
            product = (
                Product(refs[1], factor)
                if isinstance(refs[1], Ref) or isinstance(factor, Ref)
                else values[1] * alpha
            )
            return [self._call(raw, refs[0], product, writes=writes)]
        if scale is None:
            raise Unlowered
        return [
            self._call(scale, refs[1], factor),
            self._call(raw, refs[0], TEMPORARY, writes=writes),
        ]

    def _inplace(self, kernel: InplaceKernel, refs: Any, values: Any) -> list[Call]:
        target = values[0]
        if not self.active.backend.mutable:
            raise Unlowered
        if (
            kernel.raw is not None
            and kernel.elementwise
            and kernel._runs_directly(target, values[1:])
        ):
            if target.dtype.category < FLOATING or target.dtype.itemsize == 2:
                raise Unlowered
            if len(values) < 2:
                return [self._call(kernel.raw, refs[0], writes=True)]
            other = values[1]
            if isinstance(other, TensorBase):
                if not _fits(sizes_of(other), sizes_of(target)):
                    raise Unlowered  # it raises
            elif type(other) not in (int, float, Followed):
                raise Unlowered
            if len(values) < 3 or _is_one(values[2]):
                return [self._call(kernel.raw, refs[0], refs[1], writes=True)]
            return self._scaled(kernel.raw, kernel.scale, refs, values, refs[2], True)
        if kernel.dtype_at >= 0 or kernel.makes_real:
            raise Unlowered
        copy = self.active.raw_kernel("copy_", "")
        if copy is None:
            raise Unlowered
        found = self.calls(kernel.functional, refs, values)
        result = kernel.functional.lookup(self.dense)(self.dense, *values)
        if result.dtype is not target.dtype or sizes_of(result) != sizes_of(target):
            raise Unlowered
        return [*found, self._call(copy, refs[0], TEMPORARY, writes=True)]

    def _copy(self, refs: Any, values: Any) -> list[Call]:
        target, source = values[:2]
        copy = self.active.raw_kernel("copy_", "")
        if not self.active.backend.mutable or copy is None or source.device is not target.device:
            raise Unlowered
        if not _fits(sizes_of(source), sizes_of(target)):
            raise Unlowered
        return [self._call(copy, refs[0], refs[1], writes=True)]

    def _raw(self, kernel: RawKernel, refs: Any, values: Any) -> Call:
        device = kernel._device(values)
        names: dict[int, Any] = {}
        _note(refs, values, names)
        given = list(values)
        if kernel.generator_position >= 0 and given[kernel.generator_position] is None:
            if not device.is_host:
                raise Unlowered
            given[kernel.generator_position] = generator_of(device)
        if kernel.prepare is not None:
            ears = _Ears()
            with listening(ears):
                try:
                    prepared = kernel.prepare(*given)
                except Exception as error:
                    raise Unlowered from error
            if ears.heard or prepared is DECLINED:
                raise Unlowered
            given = list(prepared)
        found = [self._unwrapped(value, names, kernel, device) for value in given]
        known = {name.name for name in _refs(found)}
        if any(type(v) is Followed and names[id(v)].name not in known for v in values):
            raise Unlowered  # `prepare` has made another number of it
        return self._call(kernel.raw, *found, writes=kernel.inplace)

    def _unwrapped(self, value: Any, names: dict[int, Any], kernel: RawKernel, device: Any) -> Any:
        if isinstance(value, TensorBase) or type(value) is Followed:
            name = names.get(id(value))
            if name is None or (isinstance(value, TensorBase) and value.device is not device):
                raise Unlowered
            return name
        if isinstance(value, (list, tuple)) and any(
            isinstance(item, TensorBase) or type(item) is Followed for item in value
        ):
            return [self._unwrapped(item, names, kernel, device) for item in value]
        return kernel._unwrap(value, device)


def without_copy(calls: list[Call], fits: bool) -> list[Call]:
    """The calls of an operator in place, written into the target at once where a kernel that works
    by elements can do that; `fits` means that its result has the target's shape and dtype."""
    if len(calls) != 2 or not fits or not calls[1].writes or calls[1].arguments[1:] != (TEMPORARY,):
        return calls
    first, copy = calls
    if not getattr(first.function, "in_place", False):
        return calls
    arguments = (*first.arguments, copy.arguments[0])
    return [Call(first.function, arguments, True, first.context, into=True)]


def simplest(call: Call, arrays: list[Any], numbers: tuple[str, ...]) -> tuple[Call, list[Any]]:
    """The simplest equivalent of a call for arguments like these, with its arguments.

    A kernel declares it by an attribute `lowered`: called with the arguments, it returns a function
    and its arguments that do the same for all of such shapes and dtypes, or None.

    Args:
        numbers: names of numbers that are others in other runs.
    """
    while not call.into:
        if isinstance(call.function, InContext):
            kernel = call.function
            call = replace(call, function=kernel.kernel, context=call.context or kernel.context)
        if not hasattr(call.function, "lowered"):
            return call, arrays
        if any(isinstance(v, Product) or _is_number(v, numbers) for v in call.arguments):
            return call, arrays
        found = call.function.lowered(*arrays)
        if found is None:
            return call, arrays
        if isinstance(found, Lowered):
            if found.otherwise is not None:
                otherwise = replace(call, function=found.otherwise)
                if found.otherwise is not call.function:
                    otherwise, _ = simplest(otherwise, arrays, numbers)
                made = replace(call, function=found.function, takes_out=found.takes_out)
                return replace(made, otherwise=otherwise, joins=found.joins), arrays
            found = found.function, found.arguments
        function, given = found
        known: dict[int, Any] = {}
        for array, value in zip(arrays, call.arguments, strict=True):
            _note_refs(array, value, known)
        arguments = tuple([_with_refs(value, known) for value in given])
        if _has_array_of(arguments, arrays):
            return call, arrays
        call = replace(call, function=function, arguments=arguments)
        arrays = list(given)
    return call, arrays


def _is_number(value: Any, numbers: tuple[str, ...]) -> bool:
    return isinstance(value, Ref) and value.name in numbers


def _note_refs(array: Any, value: Any, known: dict[int, Any]) -> None:
    """Record the arrays that references stand for, in lists, too."""
    if isinstance(value, Ref) or value is TEMPORARY:
        known[id(array)] = value
    elif isinstance(value, (list, tuple)):
        for item, part in zip(array, value, strict=True):
            _note_refs(item, part, known)


def _with_refs(value: Any, known: dict[int, Any]) -> Any:
    """An argument with a reference for each array that is known, in lists, too."""
    found = known.get(id(value))
    if found is not None:
        return found
    if isinstance(value, (list, tuple)):
        return type(value)([_with_refs(item, known) for item in value])
    return value


def _has_array_of(arguments: Any, arrays: Any) -> bool:
    """Whether arguments refer to this run's arrays, for example as a view of one: another run has
    other arrays."""
    if isinstance(arguments, (list, tuple)):
        return any(_has_array_of(item, arrays) for item in arguments)
    return isinstance(arguments, np.ndarray) and _shares(arguments, arrays)


def _shares(array: Any, others: Any) -> bool:
    if isinstance(others, (list, tuple)):
        return any(_shares(array, other) for other in others)
    return isinstance(others, np.ndarray) and np.may_share_memory(array, others)


def _is_one(alpha: Any) -> bool:
    return type(alpha) is not Followed and type(alpha) in (int, float) and alpha == 1


def _fits(sizes: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an operand of such sizes broadcasts to a target's."""
    if len(sizes) > len(target):
        return False
    pairs = zip(sizes[::-1], target[::-1], strict=False)
    return all(size in (1, wanted) for size, wanted in pairs)


def _note(refs: Any, values: Any, names: dict[int, Any]) -> None:
    for ref, value in zip(refs, values, strict=True):
        if isinstance(ref, Ref):
            names[id(value)] = ref
        elif isinstance(ref, (list, tuple)) and isinstance(value, (list, tuple)):
            _note(ref, value, names)


def _refs(value: Any) -> list[Ref]:
    if isinstance(value, Ref):
        return [value]
    if isinstance(value, (list, tuple)):
        return [ref for item in value for ref in _refs(item)]
    return []
