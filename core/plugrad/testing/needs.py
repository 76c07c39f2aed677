"""Runs decompositions to find the operators that each operator needs.

A backend that lacks an operator can still compute it if it has the operators that its decomposition
calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

import plugrad
from plugrad.device import as_device
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend, find_backend
from plugrad.dispatch.backends.availability import learn_needs, needs_of, short_name
from plugrad.dispatch.backends.primitives import is_decomposed, is_primitive
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator, all_operators
from plugrad.errors import BackendNotFoundError
from plugrad.plugins import Backend
from plugrad.testing.cases import (
    Arguments,
    OpCase,
    OpSample,
    flatten,
    lay_out,
    plugin_cases,
    resolve,
    seed_of,
)

# What a call may end with that the case did not mean to work: a dtype that is not supported, say.
REFUSALS = (
    AssertionError,
    IndexError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
REAL = ("float64", "int64", "bool")
DEVICE = "primitives"


class Primitives(Backend):
    """NumPy arrays with only the CPU's kernels of primitives."""

    def __init__(self) -> None:
        super().__init__(DEVICE, array_type=np.ndarray)
        self.host = find_backend("cpu")

    def kernels(self) -> dict[str, Callable[..., Any]]:
        found = {
            short_name(op): self.host.raw_kernel(short_name(op).partition(".")[0], op.overload)
            for op in all_operators()
            if is_primitive(op)
        }
        return {name: kernel for name, kernel in found.items() if kernel is not None}

    def as_array(self, value: Any) -> Any:
        return np.asarray(value)

    def from_host(self, array: Any, index: int) -> Any:
        return array.copy()

    def to_host(self, array: Any) -> Any:
        return array.copy()

    def strides(self, array: Any) -> tuple[int, ...]:
        return self.host.backend.strides(array)

    def storage_offset(self, array: Any) -> int:
        return self.host.backend.storage_offset(array)


class Calls(Trace):
    """Notes which operators decompositions call on the device of primitives.

    Attributes:
        needs: the name of each operator that has a decomposition and was called, to the names of
            those that it called.
    """

    def __init__(self, outer: Trace | None = None) -> None:
        super().__init__(outer)
        self.needs: dict[str, set[str]] = {}
        self.running: list[Operator] = []

    def dispatch(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        running = self.running
        # What goes on on the host, for a device that cannot, is none of its business.
        if not op.resolve_key(keyset).endswith("CPU"):
            if is_decomposed(op):
                self.needs.setdefault(short_name(op), set())
            # Lazy conjugates are resolved anywhere, and only of complex numbers.
            resolves = op.name == "conj_physical"
            if running and running[-1] is not op and is_decomposed(running[-1]) and not resolves:
                self.needs[short_name(running[-1])].add(short_name(op))
        running.append(op)
        try:
            return super().dispatch(kind, op, keyset, args)
        finally:
            running.pop()


class _OnDevice(Arguments):
    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        return plugrad.from_numpy(lay_out(values, "contiguous")).to(DEVICE)


def trace_needs(cases: Iterable[OpCase], dtypes: Iterable[str] = REAL) -> dict[str, list[str]]:
    """What the decompositions call that these cases come by, forward and backward.

    Args:
        cases: of the operators to look at; see `plugrad.testing.cases`.
        dtypes: to run them with.

    Returns:
        The name of each operator that has a decomposition and was called, to the names of the
        operators that it called directly, in order.

    >>> from plugrad.testing.cases import OpCase, OpSample, T
    >>> from plugrad.testing.needs import trace_needs
    >>> trace_needs([OpCase("square", [OpSample((T((2,)),))])], ["float32"])["square"]
    ['pow.Tensor_Scalar']
    """
    calls = Calls()
    state = current_state()
    outside = state.trace
    activate_backend(Primitives())
    try:
        for case in cases:
            for sample in case.all_samples():
                for dtype in dtypes:
                    _run(calls, case, case.op, sample, dtype)
                if case.inplace is not None:
                    _run(calls, case, f"Tensor.{case.inplace}", sample, "float64")
    finally:
        state.trace = outside
        deactivate_backend(DEVICE)
    return {name: sorted(called) for name, called in sorted(calls.needs.items())}


def learn_needs_of_plugins() -> None:
    """Trace the cases that plugins provide for their operators, if not traced yet.

    `availability` then has the operators of those decompositions.
    """
    unknown = {
        op.qualified_name.partition(".")[0]
        for op in all_operators()
        if op.namespace != "plugrad" and is_decomposed(op) and needs_of(op) is None
    }
    if unknown:
        cases = [case for case in plugin_cases() if case.op.partition(".")[0] in unknown]
        # Without the CPU backend nothing can be run, and they stay unknown.
        with suppress(BackendNotFoundError):
            learn_needs(trace_needs(cases, ["float64"]) if cases else {})


def _run(calls: Calls, case: OpCase, path: str, sample: OpSample, dtype: str) -> None:
    inplace = path != case.op
    state = current_state()
    state.trace = None
    arguments = _OnDevice(dtype, seed_of(case, sample))
    args = arguments.make(sample.args)
    kwargs = arguments.make(sample.kwargs)
    state.trace = calls
    try:
        with (
            warnings.catch_warnings(),
            as_device(DEVICE),
            plugrad.set_grad_enabled(not inplace),
        ):
            warnings.simplefilter("ignore")
            results = [r for r in flatten(resolve(path)(*args, **kwargs)) if _has_graph(r)]
            if results and case.gradient:
                ones = [plugrad.ones_like(result) for result in results]
                plugrad.autograd.grad(results, arguments.leaves, ones, allow_unused=True)
    except REFUSALS:
        calls.running.clear()


def _has_graph(result: Any) -> bool:
    return isinstance(result, plugrad.Tensor) and result.requires_grad
