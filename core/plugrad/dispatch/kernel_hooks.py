"""Hooks by which higher layers make an operator's kernel if none is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from plugrad.dispatch.backends.active import ActiveBackend

if TYPE_CHECKING:
    from plugrad.dispatch.operator import Operator


@final
class KernelHooks:
    """How a raw kernel on arrays becomes one on tensors; the tensor layer installs it."""

    def __init__(self) -> None:
        self.function: Callable[[Operator, ActiveBackend, bool], Any] | None = None
        self.keyset_of: Callable[[tuple[Any, ...]], int] | None = None
        self.missing_gradient: Callable[[Operator], Any] | None = None
        self.functional_view: Callable[[Operator], Any] | None = None
        self.host_fallback: Callable[[Operator, ActiveBackend], Any] | None = None
        self.make_autocast: Callable[[Operator, ActiveBackend], Any] | None = None
        self.make_level_autocast: Callable[[Operator], Any] | None = None
        self.make_transforms: Callable[[Operator], Any] | None = None
        self.make_outer_level: Callable[[Operator], Any] | None = None
        self.make_forward: Callable[[Operator], Any] | None = None
        self.make_math_bits: Callable[[Operator], Any] | None = None

    def forward(self, op: Operator) -> Any:
        if self.make_forward is None:
            return None
        return self.make_forward(op)

    def math_bits(self, op: Operator) -> Any:
        if self.make_math_bits is None:
            return None
        return self.make_math_bits(op)

    def autocast(self, op: Operator, active: ActiveBackend) -> Any:
        if self.make_autocast is None:
            return None
        return self.make_autocast(op, active)

    def autocast_at_levels(self, op: Operator) -> Any:
        if self.make_level_autocast is None:
            return None
        return self.make_level_autocast(op)

    def transforms(self, op: Operator) -> Any:
        if self.make_transforms is None:
            return None
        return self.make_transforms(op)

    def outer_level(self, op: Operator) -> Any:
        if self.make_outer_level is None:
            return None
        return self.make_outer_level(op)

    def functionalize(self, op: Operator) -> Any:
        if self.functional_view is None:
            return None
        return self.functional_view(op)

    def on_host(self, op: Operator, active: ActiveBackend) -> Any:
        if self.host_fallback is None:
            return None
        return self.host_fallback(op, active)

    def without_gradient(self, op: Operator) -> Any:
        if self.missing_gradient is None:
            return None
        return self.missing_gradient(op)

    def make(self, op: Operator, active: ActiveBackend, with_raw: bool) -> Any:
        if self.function is None:
            return None
        return self.function(op, active, with_raw)


KERNEL_HOOKS: Final = KernelHooks()


def set_kernel_factory(
    factory: Callable[[Operator, ActiveBackend, bool], Any],
    keyset_of: Callable[[tuple[Any, ...]], int],
) -> None:
    """Install the functions that depend on tensors: wrapping raw kernels, and the key set of
    arguments.

    `factory(op, active, with_raw)` leaves out kernels on arrays of the operator itself, which have
    declined, if `with_raw` is false.
    """
    KERNEL_HOOKS.function = factory
    KERNEL_HOOKS.keyset_of = keyset_of


def set_missing_gradient(make: Callable[[Operator], Any]) -> None:
    """Install the function that makes the Autograd kernel of an operator that should have a
    gradient."""
    KERNEL_HOOKS.missing_gradient = make


def set_host_fallback(make: Callable[[Operator, ActiveBackend], Any]) -> None:
    """Install the function that makes a kernel for an operator computed by another backend."""
    KERNEL_HOOKS.host_fallback = make


def set_autocast(
    make: Callable[[Operator, ActiveBackend], Any], make_level_autocast: Callable[[Operator], Any]
) -> None:
    """Install the function that makes the Autocast kernel of an operator, for a backend's tensors
    and for levels' tensors; it returns None for operators that are not cast."""
    KERNEL_HOOKS.make_autocast = make
    KERNEL_HOOKS.make_level_autocast = make_level_autocast


def set_transforms(
    make: Callable[[Operator], Any], make_outer_level: Callable[[Operator], Any]
) -> None:
    """Install the functions that make an operator's kernels for tensors of levels: before and after
    autograd."""
    KERNEL_HOOKS.make_transforms = make
    KERNEL_HOOKS.make_outer_level = make_outer_level


def set_forward(make: Callable[[Operator], Any]) -> None:
    """Install the function that makes an operator's ForwardAD kernel; None for a composite."""
    KERNEL_HOOKS.make_forward = make


def set_math_bits(make: Callable[[Operator], Any]) -> None:
    """Install the function that makes the kernel of an operator for `Conjugate` and `Negative`."""
    KERNEL_HOOKS.make_math_bits = make


def set_functional_view(make: Callable[[Operator], Any]) -> None:
    """Install the function that makes the Functionalize kernel of an operator that returns a
    view."""
    KERNEL_HOOKS.functional_view = make


def keyset_of_arguments(values: tuple[Any, ...]) -> int:
    if KERNEL_HOOKS.keyset_of is None:
        return 0
    return KERNEL_HOOKS.keyset_of(values)
