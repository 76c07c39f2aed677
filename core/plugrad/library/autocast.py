"""Rules for the dtype that autocast casts an operator's inputs to."""

from __future__ import annotations

from plugrad.device import as_device
from plugrad.dispatch import keys
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.registration import RegistrationHandle
from plugrad.dtype import DType
from plugrad.errors import BackendNotFoundError
from plugrad.library.library import Library
from plugrad.ops.autocast import AutocastKernel, autocast_dtypes


def add_autocast_rule(
    lib: Library, op: Operator, device_type: object, cast_inputs: DType
) -> RegistrationHandle:
    """Register the rule with a library; one that is registered later takes its place."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if not isinstance(cast_inputs, DType):
        raise TypeError(
            f"register_autocast(): cast_inputs must be a plugrad.dtype, not "
            f"{type(cast_inputs).__name__}"
        )
    name = as_device(device_type).type
    if name == "meta":
        raise ValueError(f"Device type '{name}' does not support autocast.")
    if not _has_autocast(name):
        # Its autocast regions are disabled, so the rule is never used, which is no error.
        warn_at_caller(
            f"register_autocast(): the backend {name!r} has no autocast, since it has no 16-bit "
            f"floating point dtype; the rule for {op.qualified_name} has no effect",
            UserWarning,
        )
    number = keys.register_backend_key(name)
    kernel = AutocastKernel(op, name, number, "inputs", cast_inputs)
    return lib._add(op, keys.autocast_key(number), kernel)


def _has_autocast(device_type: str) -> bool:
    try:
        return len(autocast_dtypes(device_type)) != 0
    except BackendNotFoundError:
        # It may be installed some day.
        return True
