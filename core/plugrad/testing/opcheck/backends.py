"""Checks that every installed backend computes what the arguments' own backend computes."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad.device import Device
from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend, active_backends, find_backend
from plugrad.errors import OperatorNotFoundError
from plugrad.library.schemas import tensors_in
from plugrad.plugins import get_manager
from plugrad.testing.opcheck.inputs import Call, OpCheckError, Skipped, mapped, outputs_of


def check_backends(call: Call) -> dict[str, str]:
    """The outcome on every other installed backend; OpCheckError if one gives other values."""
    if call.draws_random_numbers:
        raise Skipped("it draws random numbers")
    if not call.tensors:
        raise Skipped("no argument is a tensor, so the backend is unknown")
    home = call.tensors[0].device.type
    with plugrad.no_grad():
        inputs = call.copies()
        expected = [*_on_host(call.run(inputs)), *_on_host(tensors_in(inputs))]
    found: dict[str, str] = {}
    for name in _installed():
        if name not in (home, "meta"):
            found[name] = _compare(call, name, expected)
    return found


def _installed() -> list[str]:
    active = {backend.name for backend in active_backends()}
    return sorted(active | set(get_manager().backends()))


def _on_host(values: Any) -> list[Any]:
    return [
        item.detach().cpu() if isinstance(item, plugrad.Tensor) else item
        for item in outputs_of(values)
    ]


def _compare(call: Call, name: str, expected: list[Any]) -> str:
    try:
        active = find_backend(name)
        device = active.device(None)  # or why there is none
    except Exception as error:
        return f"SKIPPED: the backend cannot be used: {error}"
    reason = _reason_to_skip(call, active)
    if reason:
        return f"SKIPPED: {reason}"
    moved = tuple(
        mapped(
            lambda tensor: tensor.detach().to(device),
            device if isinstance(value, Device) else value,
        )
        for value in call.copies()
    )
    try:
        with plugrad.no_grad():
            out = call.run(moved)
    except OperatorNotFoundError as error:
        return f"SKIPPED: {error}"
    except Exception as error:
        raise OpCheckError(
            f"{call.op.qualified_name} has a kernel that serves backend {name!r}, which raised "
            f"{type(error).__name__}: {error}\nA kernel for all backends may only use operators; "
            "say which backends it is for (device_types=...), or register one for each."
        ) from error
    for tensor in (item for item in outputs_of(out) if isinstance(item, plugrad.Tensor)):
        if tensor.device.type != name:
            raise OpCheckError(
                f"{call.op.qualified_name} was called with tensors on backend {name!r} and "
                f"returned one on {tensor.device}. A kernel must make its results where its "
                "arguments are: x.new_empty(...), device=x.device."
            )
    try:
        call.compare([*_on_host(out), *_on_host(tensors_in(moved))], expected, check_device=False)
    except AssertionError as error:
        raise OpCheckError(
            f"{call.op.qualified_name} gives other results on backend {name!r} than on "
            f"{call.tensors[0].device.type!r}: {error}\nFix its kernel for {name!r}."
        ) from error
    return "SUCCESS"


def _reason_to_skip(call: Call, active: ActiveBackend) -> str:
    dense = keys.DENSE_BIT | (1 << (keys.BACKEND_SHIFT + active.number))
    try:
        call.op.lookup(dense)
    except OperatorNotFoundError:
        return "there is no kernel for it"
    for tensor in call.tensors:
        if tensor.dtype not in active.backend.dtypes():
            return f"the backend has no {tensor.dtype}"
    return ""
