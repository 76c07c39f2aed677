"""Kernels of operators that are written in Python: functions on tensors, or on raw arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from plugrad._torch_names.storage import storage_of
from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend, backend_by_number
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.scope import ExcludeKeys
from plugrad.library.schemas import split_keywords, tensors_in, written_tensors
from plugrad.tensor.aliasing.alias_kernels import announce_write
from plugrad.tensor.base import TensorBase, bump_version
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.calls.kernel_factory import wrap_raw_kernel

_ALIASES = (
    "The output of this custom operator (1) must not also be an input to this custom operator and "
    "(2) may not alias any inputs to this custom operator or other returns. The most common way "
    "to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please "
    "instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
    "the custom operator to not return y."
)

_PYTHON_TYPES = {"Tensor": TensorBase, "int": int, "float": float, "bool": bool, "str": str}


def call_on_tensors(op: Operator, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Run a Python function on tensors where autograd has had its turn: nothing is recorded.

    Lists are Python lists, keyword-only arguments are passed by keyword.
    """
    arguments = op.schema.arguments
    given = tuple(
        list(value) if argument.type.is_list and isinstance(value, tuple) else value
        for argument, value in zip(arguments, values, strict=True)
    )
    positional, keywords = split_keywords(op.schema, given)
    with ExcludeKeys(keys.AUTOGRAD_BIT):
        return function(*positional, **keywords)


class OnTensors:
    """A function on tensors as the kernel of a backend's key, or of CompositeExplicitAutograd."""

    def __init__(self, op: Operator, function: Callable[..., Any]) -> None:
        self.op = op
        self.function = function

    def __call__(self, keyset: int, *values: Any) -> Any:
        return call_on_tensors(self.op, self.function, values)


class OnArrays:
    """A function on a backend's raw arrays as the kernel of its key.

    The backend need not be there when the kernel is registered, and may be another one of the same
    name later.
    """

    def __init__(self, op: Operator, number: int, function: Callable[..., Any]) -> None:
        self.op = op
        self.number = number
        self.function = function
        self._active: ActiveBackend | None = None
        self._kernel: Any = None

    def __call__(self, keyset: int, *values: Any) -> Any:
        active = backend_by_number(self.number)
        if active is None:
            raise RuntimeError(
                f"{self.op.qualified_name}: the backend that its kernel is for is not active"
            )
        if active is not self._active:
            self._kernel = wrap_raw_kernel(self.op, active, self.function, True)
            self._active = active
        out = self._kernel(keyset, *values)
        if not self.op.schema.mutates:
            return out
        returned = written_results(self.op, values)
        return out if returned is None else returned


def written_results(op: Operator, values: tuple[Any, ...]) -> Any:
    """The results of an operator that returns only tensors that it wrote to; None for another
    one."""
    written = {
        argument.type.alias: value
        for argument, value in zip(op.schema.arguments, values, strict=True)
        if argument.type.alias is not None
    }
    found = [written.get(item.type.alias) for item in op.schema.returns if item.type.alias]
    if len(found) != len(op.schema.returns) or not found:
        return None
    return found[0] if len(found) == 1 else tuple(found)


class CountsWrites:
    """The ADInplaceOrView kernel of an operator that writes to some of its arguments."""

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __call__(self, keyset: int, *values: Any) -> Any:
        for tensor in written_tensors(self.op.schema, values):
            announce_write(tensor)
            bump_version(tensor)
        return self.op.redispatch(keyset & keys.AFTER_AD_INPLACE_OR_VIEW, *values)


def module_of(function: Callable[..., Any]) -> str:
    """The location of a function, for messages."""
    module = inspect.getmodule(function)
    return repr(getattr(function, "__module__", None)) if module is None else repr(module)


def check_results(op: Operator, function: Callable[..., Any], out: Any) -> None:
    """RuntimeError if the returned values do not match the schema."""
    returns = op.schema.returns
    where = f"{op.name} (with implementation in {module_of(function)})"
    if not returns:
        if out is not None:
            raise RuntimeError(f"{where}: expected no result, got {type_name(out)}")
        return
    outputs = out if len(returns) > 1 else (out,)
    if not isinstance(outputs, tuple | list) or len(outputs) != len(returns):
        got = f"{len(outputs)} of them" if isinstance(outputs, tuple | list) else type_name(out)
        raise RuntimeError(f"{where}: expected a tuple of {len(returns)} results, got {got}")
    for number, (returned, value) in enumerate(zip(returns, outputs, strict=True)):
        wanted = _PYTHON_TYPES.get(returned.type.base)
        items = value if returned.type.is_list and isinstance(value, list | tuple) else [value]
        for item in items:
            if wanted is None or isinstance(item, wanted):
                continue
            if wanted is float and isinstance(item, int):
                continue
            hint = "; plugrad.from_numpy makes a tensor of an array" if wanted is TensorBase else ""
            raise RuntimeError(
                f"{where}: expected a {returned.type} as result {number}, got {type_name(item)}"
                f"{hint}"
            )


def share_memory(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors are views of the same memory, judging by their arrays."""
    if a is b or a._backend_array is b._backend_array:
        return True
    if a._shared_storage is not None and a._shared_storage is b._shared_storage:
        return True
    return a.device is b.device and storage_of(a) == storage_of(b)


def check_aliases(
    op: Operator, function: Callable[..., Any], values: tuple[Any, ...], out: Any
) -> None:
    """RuntimeError if a result is an argument, or shares memory with one or another result."""
    inputs = tensors_in(values)
    outputs = tensors_in((out,))
    for number, output in enumerate(outputs):
        for other in (*inputs, *outputs[:number]):
            if share_memory(output, other):
                raise RuntimeError(
                    f"{op.name} (with implementation in {module_of(function)}): {_ALIASES}"
                )
