"""Runs the kernel that serves a key set, for the generated code of all operators.

The class of kernel that an operator usually has is called natively, any other as Python calls it;
a listener of dispatch hears of the call. The functions differ in that class. Their code is once
here and not in each of a thousand generated functions, where it was a twenty-fifth of all C.
"""

from __future__ import annotations

from typing import Any

from mypy_extensions import i64

from plugrad.dispatch.adapters import BelowAutograd, CompositeKernel
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator
from plugrad.tensor.aliasing.alias_kernels import InplaceViewKernel, MutationKernel, ViewKernel
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.elementwise_kernels import BinaryKernel, UnaryKernel
from plugrad.tensor.calls.kernel_factory import BackendSelectKernel
from plugrad.tensor.calls.kernels import RawKernel


def is_recorded(state: LocalState, op: Operator, keyset: i64) -> bool:
    """Whether a call is for the generated kernel that records, and nobody listens: generated code
    calls that one natively."""
    return state.trace is None and op.lookup(keyset) is op.autograd_kernel


def is_composed(state: LocalState, op: Operator, keyset: i64) -> bool:
    """Whether a call is for the core's own composition, and nobody listens: generated code calls
    that one natively."""
    return state.trace is None and isinstance(op.lookup(keyset), CompositeKernel)


def _heard(
    state: LocalState, op: Operator, keyset: i64, below: bool, args: tuple[object, ...]
) -> Any:
    """Run an operator while there is a listener."""
    assert state.trace is not None
    return state.trace.dispatch("redispatch" if below else "call", op, keyset, args)


def run(state: LocalState, op: Operator, keyset: i64, below: bool, args: tuple[Any, ...]) -> Any:
    """Run an operator; each of these functions returns what the kernel does.

    Args:
        state: the calling thread's.
        keyset: what is left of the key set.
        below: whether autograd redispatches; else it is a call.
        args: all arguments, in schema order.
    """
    if state.trace is not None:
        return _heard(state, op, keyset, below, args)
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, RawKernel):
        return kernel.compute(args)
    if isinstance(kernel, BelowAutograd):
        return kernel.compute(args)
    return kernel(keyset, *args)


def run_unary(state: LocalState, op: Operator, keyset: i64, below: bool, a: TensorBase) -> Any:
    """Run an elementwise operator of one tensor."""
    if state.trace is not None:
        return _heard(state, op, keyset, below, (a,))
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, UnaryKernel):
        return kernel.compute(a)
    if isinstance(kernel, BelowAutograd):
        return kernel.compute((a,))
    return kernel(keyset, a)


def run_tensors(
    state: LocalState, op: Operator, keyset: i64, below: bool, a: TensorBase, b: TensorBase
) -> Any:
    """Run an elementwise operator of two tensors."""
    if state.trace is not None:
        return _heard(state, op, keyset, below, (a, b))
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, BinaryKernel):
        return kernel.compute_tensors(a, b)
    if isinstance(kernel, BelowAutograd):
        return kernel.compute((a, b))
    return kernel(keyset, a, b)


def run_scaled_tensors(
    state: LocalState,
    op: Operator,
    keyset: i64,
    below: bool,
    a: TensorBase,
    b: TensorBase,
    alpha: Any,
) -> Any:
    """Run an elementwise operator of two tensors, the second of them with a factor."""
    if state.trace is not None:
        return _heard(state, op, keyset, below, (a, b, alpha))
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, BinaryKernel):
        return kernel.compute_tensors(a, b, alpha)
    if isinstance(kernel, BelowAutograd):
        return kernel.compute((a, b, alpha))
    return kernel(keyset, a, b, alpha)


def run_numbers(state: LocalState, op: Operator, keyset: i64, below: bool, a: Any, b: Any) -> Any:
    """Run an elementwise operator of a tensor and a number, on either side."""
    if state.trace is not None:
        return _heard(state, op, keyset, below, (a, b))
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, BinaryKernel):
        return kernel.compute(a, b)
    if isinstance(kernel, BelowAutograd):
        return kernel.compute((a, b))
    return kernel(keyset, a, b)


def run_scaled_numbers(
    state: LocalState, op: Operator, keyset: i64, below: bool, a: Any, b: Any, alpha: Any
) -> Any:
    """Run an elementwise operator of a tensor and a number, the second of them with a factor."""
    if state.trace is not None:
        return _heard(state, op, keyset, below, (a, b, alpha))
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, BinaryKernel):
        return kernel.compute(a, b, alpha)
    if isinstance(kernel, BelowAutograd):
        return kernel.compute((a, b, alpha))
    return kernel(keyset, a, b, alpha)


def run_view(
    state: LocalState, op: Operator, keyset: i64, below: bool, args: tuple[Any, ...]
) -> Any:
    """Run an operator that returns views of its first argument."""
    if state.trace is not None:
        return _heard(state, op, keyset, below, args)
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, ViewKernel):
        return kernel.compute(state, keyset, args)
    return kernel(keyset, *args)


def run_inplace(
    state: LocalState,
    op: Operator,
    keyset: i64,
    below: bool,
    target: TensorBase,
    others: tuple[Any, ...],
) -> Any:
    """Run an operator that writes into its first argument, or makes it a view of itself."""
    if state.trace is not None:
        return _heard(state, op, keyset, below, (target, *others))
    kernel: Any = op.lookup_below(keyset) if below else op.lookup(keyset)
    if isinstance(kernel, MutationKernel):
        return kernel.compute(state, keyset, target, others)
    if isinstance(kernel, InplaceViewKernel):
        return kernel.compute(state, keyset, target, others)
    return kernel(keyset, target, *others)


def run_factory(state: LocalState, op: Operator, keyset: i64, args: tuple[Any, ...]) -> Any:
    """Run an operator that has no tensor: a device among its arguments chooses the backend."""
    if state.trace is not None:
        return _heard(state, op, keyset, False, args)
    kernel: Any = op.lookup(keyset)
    if isinstance(kernel, BackendSelectKernel):
        return kernel.compute(state, args)
    return kernel(keyset, *args)
