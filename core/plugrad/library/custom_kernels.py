"""The kernels of operators that `custom_op` makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import canonical_device
from plugrad.dispatch.keys import DispatchKey
from plugrad.library.kernels import (
    OnArrays,
    OnTensors,
    check_aliases,
    check_results,
    module_of,
    written_results,
)
from plugrad.library.tags import Tag

if TYPE_CHECKING:
    from plugrad.library.custom_op import CustomOpDef


class DeviceKernel:
    """The entry in the operator's table for one backend or for all; its function can be
    replaced."""

    def __init__(self, definition: CustomOpDef, device_type: str | None) -> None:
        self.definition = definition
        self.device_type = device_type
        self.key: DispatchKey = keys.COMPOSITE_EXPLICIT_AUTOGRAD
        self.number = -1
        if device_type is not None:
            self.number = keys.register_backend_key(device_type)
            self.key = keys.dense_key(self.number)
        # A function and the kernel made from it, in one value so that they always match.
        self.in_use: tuple[Callable[..., Any], Any] = (definition._init_fn, None)
        self._initial = OnTensors(definition._op, definition._init_fn)

    def use(self, function: Callable[..., Any], raw: bool) -> None:
        op = self.definition._op
        kernel = OnArrays(op, self.number, function) if raw else OnTensors(op, function)
        self.in_use = (function, kernel)

    def __call__(self, keyset: int, *values: Any) -> Any:
        op = self.definition._op
        function, kernel = self.in_use
        if self.device_type in self.definition._disabled_kernel:
            function, kernel = self.definition._init_fn, self._initial
        out = kernel(keyset, *values)
        check_results(op, function, out)
        if Tag.inplace in self.definition._tags or Tag.out in self.definition._tags:
            self._check_returned(function, values, out)
        elif not op.schema.is_view:
            check_aliases(op, function, values, out)
        return out

    def _check_returned(
        self, function: Callable[..., Any], values: tuple[Any, ...], out: Any
    ) -> None:
        wanted = written_results(self.definition._op, values)
        pairs = zip(out, wanted, strict=True) if isinstance(out, tuple) else [(out, wanted)]
        if all(given is expected for given, expected in pairs):
            return
        tag, what = (
            ("Tag.inplace", "its first argument")
            if Tag.inplace in self.definition._tags
            else ("Tag.out", "its mutable keyword-only arguments")
        )
        raise RuntimeError(
            f"{self.definition._name} (with implementation in {module_of(function)}): An operator "
            f"tagged with {tag} must return {what}."
        )


class ByDevice:
    """The BackendSelect kernel of an operator without tensors: its device argument decides."""

    def __init__(self, definition: CustomOpDef, position: int) -> None:
        self.definition = definition
        self.position = position

    def __call__(self, keyset: int, *values: Any) -> Any:
        definition = self.definition
        wanted = values[self.position]
        kind = canonical_device(None).type if wanted is None else wanted.type
        if kind not in definition._kernels and None not in definition._kernels:
            raise RuntimeError(
                f"{definition._name} does not have a kernel registered for {kind}. Please use "
                "register_kernel to do so."
            )
        device = canonical_device(wanted)
        given = (*values[: self.position], device, *values[self.position + 1 :])
        below = keys.dense_key(keys.backend_number(kind)).mask
        return definition._op.redispatch(below, *given)
