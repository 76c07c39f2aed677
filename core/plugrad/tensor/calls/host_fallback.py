"""Runs operators for which a backend has no kernel on another backend: slow, and opt-in."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.device import Device
from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend, canonical_device, find_backend
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.missing_kernels import missing_kernel
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.errors import BackendNotFoundError, HostFallbackWarning, OperatorNotFoundError
from plugrad.tensor.base import TensorBase
from plugrad.tensor.creation.transfer import moved


@final
class HostFallbackKernel:
    """An operator's kernel on a backend that lacks it: arguments are copied to another backend
    through host memory, the operator runs there, and results and written tensors are copied
    back."""

    def __init__(self, op: Operator, active: ActiveBackend) -> None:
        self.op = op
        self.active = active
        self.helper: ActiveBackend = _helper_of(active)
        self.warned = False

    def __call__(self, keyset: i64, *args: Any) -> Any:
        if not self.warned:
            self._warn()
        here = _device_of(args, self.active.name)
        there = self.helper.device(None)
        moved = tuple([_moved(value, there, here.type) for value in args])
        dense: i64 = self.helper.tensor_keyset & (keys.BACKEND_MASK | keys.DENSE_BIT)
        try:
            out = self.op.lookup(dense)(dense, *moved)
        except OperatorNotFoundError as error:
            raise self._not_even_there(error) from None
        written = self._write_back(args, moved)
        if written is not None and len(self.op.schema.returns) == 1:
            return written
        return _moved(out, here, self.helper.name)

    def _warn(self) -> None:
        self.warned = True
        warn_at_caller(
            f"{self.op.qualified_name} has no kernel on backend {self.active.name!r} and is "
            f"computed on {self.helper.name!r}, with copies of its arguments and results (said "
            "once per operator)",
            HostFallbackWarning,
        )

    def _write_back(self, args: tuple[Any, ...], moved: tuple[Any, ...]) -> Any:
        """Copy what the operator wrote into the arguments that it was to write to."""
        copy = find_operator("plugrad::copy_")
        written: Any = None
        for argument, given, there in zip(self.op.schema.arguments, args, moved, strict=True):
            alias = argument.type.alias
            if alias is None or not alias.is_write or copy is None:
                continue
            given_tensors = [given] if isinstance(given, TensorBase) else list(given or ())
            there_tensors = [there] if isinstance(there, TensorBase) else list(there or ())
            for target, source in zip(given_tensors, there_tensors, strict=True):
                dense: i64 = self.active.tensor_keyset & (keys.BACKEND_MASK | keys.DENSE_BIT)
                copy.lookup(dense)(dense, target, source, False)
            written = given
        return written

    def _not_even_there(self, error: OperatorNotFoundError) -> OperatorNotFoundError:
        name = self.op.qualified_name
        message = missing_kernel(
            name, name, self.active.name, self.active.key_name, self.op.schema.is_view
        )
        return OperatorNotFoundError(
            f"{message.partition(' Give backend')[0]} Its fallback {self.helper.name!r} cannot "
            f"compute it either: {error}",
            operator=name,
            backend=self.active.name,
            primitive=error.primitive,
        )


def make_host_fallback(op: Operator, active: ActiveBackend) -> Any:
    """The fallback kernel; None where another backend's result would not do.

    A view must share memory with its input, which a copy does not; for immutable arrays this does
    not matter.
    """
    if active.fallback == active.name or (op.schema.is_view and active.backend.mutable):
        return None
    return HostFallbackKernel(op, active)


def _helper_of(active: ActiveBackend) -> ActiveBackend:
    try:
        return find_backend(active.fallback)
    except BackendNotFoundError as error:
        raise BackendNotFoundError(
            f"backend {active.name!r} has fallback = {active.fallback!r}. {error}"
        ) from None


def _device_of(args: tuple[Any, ...], name: str) -> Device:
    """The device of the backend `name` that an operator was called for."""
    for value in args:
        if isinstance(value, Device) and value.type == name:
            return canonical_device(value)
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase) and item.device.type == name:
                return item.device
    return canonical_device(name)


def _moved(value: Any, device: Device, source: str) -> Any:
    """A value with all its tensors of backend `source` copied to `device`."""
    if isinstance(value, TensorBase):
        if value.device.type != source:
            return value
        return moved(value, device, False)
    if isinstance(value, Device):
        return device
    if isinstance(value, list):
        return [_moved(item, device, source) for item in value]
    if isinstance(value, tuple):
        items = [_moved(item, device, source) for item in value]
        # Named results have a class of their own.
        return tuple(items) if type(value) is tuple else type(value)(*items)
    return value
