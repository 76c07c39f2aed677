"""Chooses the wrapper for an operator's raw kernel on a backend; installs itself as a hook."""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.device import CPU, Device
from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend, canonical_device, set_own_backend
from plugrad.dispatch.backends.raw_kernels import raw_kernel_of
from plugrad.dispatch.kernel_hooks import set_functional_view, set_host_fallback, set_kernel_factory
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.tensor.aliasing.alias_kernels import (
    ArrayViewKernel,
    CopyKernel,
    InplaceKernel,
    RebindingKernel,
)
from plugrad.tensor.aliasing.functionalize import make_functional_view
from plugrad.tensor.base import (
    TensorBase,
)
from plugrad.tensor.calls.elementwise import PromoteAll
from plugrad.tensor.calls.elementwise_kernels import BinaryKernel, UnaryKernel
from plugrad.tensor.calls.host_fallback import make_host_fallback
from plugrad.tensor.calls.kernels import RawKernel
from plugrad.tensor.meta.backend import MetaBackend
from plugrad.tensor.meta.shapes import structured

# Elementwise: the operands determine shape and dtype of the result.
_STRUCTURES: Final = ("unary", "binary", "binary_alpha", "elementwise")


@final
class BackendSelectKernel:
    """Factory functions have no tensor to select the backend: their device argument does."""

    def __init__(self, op: Operator, position: int) -> None:
        self.op = op
        self.position = position

    def __call__(self, keyset: i64, *args: Any) -> Any:
        return self.compute(current_state(), args)

    def compute(self, state: LocalState, args: tuple[Any, ...]) -> Any:
        """Run the kernel of the device among the arguments."""
        given = args[self.position]
        device = canonical_device(given)
        if given is not device:
            values = list(args)
            values[self.position] = device
            args = tuple(values)
        below: i64 = _host_keyset if device is CPU else _keyset_of(device)
        if state.trace is not None:
            return state.trace.dispatch("redispatch", self.op, below, args)
        kernel: Any = self.op.lookup_dense(below)
        if isinstance(kernel, RawKernel):
            return kernel.compute_on(device, args)
        return kernel(below, *args)


def _keyset_of(device: Device) -> i64:
    # Not an i64: mypyc would make the 1 a C int, which has 32 bits to be shifted.
    number = keys.backend_number(device.type)
    found: i64 = keys.DENSE_BIT | (1 << (keys.BACKEND_SHIFT + number))
    return found


_host_keyset: Final[i64] = _keyset_of(CPU)


def _make_kernel(op: Operator, active: ActiveBackend, with_raw: bool) -> Any:
    name = op.kernel_name
    raw = raw_kernel_of(op, active) if with_raw else None
    if raw is None and active.number == keys.META and op.structure in _STRUCTURES:
        raw = structured(op)
    if not op.schema.is_inplace:
        return None if raw is None else wrap_raw_kernel(op, active, raw)
    if op.qualified_name == "plugrad::copy_":
        return CopyKernel(op)
    functional = _functional_of(op)
    if op.structure == "inplace_view" and functional is not None:
        return ArrayViewKernel(functional, active)
    if not active.backend.mutable:
        if raw is not None and functional is None:
            return RebindingKernel(op, active, raw)
        raw = None
    if raw is not None and (functional is None or not op.structure):
        return RawKernel(op, active, raw)
    if functional is None:
        return None
    decomposed = functional.kernel_for(keys.COMPOSITE_EXPLICIT_AUTOGRAD) is not None
    if active.raw_kernel(name[:-1], functional.overload) is None and not decomposed:
        return None
    return InplaceKernel(op, functional, active, raw)


def _functional_of(op: Operator) -> Operator | None:
    """`mul.Tensor` for `mul_.Tensor`, if there is one."""
    suffix = f".{op.overload}" if op.overload else ""
    return find_operator(f"{op.namespace}::{op.name[:-1]}{suffix}")


def wrap_raw_kernel(op: Operator, active: ActiveBackend, raw: Any, registered: bool = False) -> Any:
    """A kernel on tensors from one on a backend's arrays; `registered` means that it is not from
    the backend's table."""
    if op.structure == "unary":
        return UnaryKernel(op, active, raw, registered)
    if op.structure in ("binary", "binary_alpha"):
        return BinaryKernel(op, active, raw, registered)
    kernel = RawKernel(op, active, raw, registered)
    if op.structure == "elementwise":
        kernel.prepare = PromoteAll(op.result, op.prepare)
    return kernel


def keyset_of(values: tuple[Any, ...]) -> int:
    """The union of the key sets of all tensors among an operator's arguments."""
    keyset: i64 = 0
    for value in values:
        if isinstance(value, TensorBase):
            keyset |= value._keyset
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, TensorBase):
                    keyset |= item._keyset
    return keyset if keyset != 0 else keys.BACKEND_SELECT_BIT


set_kernel_factory(_make_kernel, keyset_of)
set_own_backend(MetaBackend())
set_functional_view(make_functional_view)
set_host_fallback(make_host_fallback)
