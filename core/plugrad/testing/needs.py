"""What decompositions call, found by running them: the operators that each operator needs.

A backend that lacks an operator has it all the same if it has what its decomposition calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import plugrad
from plugrad.dispatch import keys
from plugrad.dispatch.availability import short_name
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.primitives import is_decomposed
from plugrad.dispatch.trace import Trace
from plugrad.testing.cases import Arguments, OpCase, OpSample, flatten, resolve, seed_of

# What a call may end with that the case did not mean to work: a dtype that is not supported, say.
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
REAL = ("float64", "float32", "int64", "bool")


class Decomposing(Trace):
    """Runs decompositions in place of the CPU's kernels, and notes who calls whom.

    Attributes:
        needs: the name of each operator that was called, to the names of those that it called.
    """

    def __init__(self, outer: Trace | None = None) -> None:
        super().__init__(outer)
        self.needs: dict[str, set[str]] = {}
        self.running: list[Operator] = []

    def dispatch(self, kind: str, op: Operator, keyset: int, args: tuple[object, ...]) -> Any:
        running = self.running
        if is_decomposed(op):
            self.needs.setdefault(short_name(op), set())
        if running and running[-1] is not op and is_decomposed(running[-1]):
            self.needs[short_name(running[-1])].add(short_name(op))
        running.append(op)
        try:
            decomposition = op.kernel_for(keys.COMPOSITE_EXPLICIT_AUTOGRAD)
            if decomposition is not None and op.resolve_key(keyset) == "CPU":
                return decomposition(keyset, *args)
            return super().dispatch(kind, op, keyset, args)
        finally:
            running.pop()


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
    trace = Decomposing()
    state = current_state()
    outside = state.trace
    state.trace = trace
    try:
        for case in cases:
            for sample in case.all_samples():
                for dtype in dtypes:
                    _run(case, case.op, sample, dtype)
                if case.inplace is not None:
                    _run(case, f"Tensor.{case.inplace}", sample, "float64")
    finally:
        state.trace = outside
    return {name: sorted(called) for name, called in sorted(trace.needs.items())}


def _run(case: OpCase, path: str, sample: OpSample, dtype: str) -> None:
    inplace = path != case.op
    arguments = Arguments(dtype, seed_of(case, sample), overlapping=not inplace)
    args = arguments.make(sample.args)
    kwargs = arguments.make(sample.kwargs)
    try:
        with warnings.catch_warnings(), plugrad.set_grad_enabled(not inplace):
            warnings.simplefilter("ignore")
            results = [r for r in flatten(resolve(path)(*args, **kwargs)) if _has_graph(r)]
            if results and case.gradient:
                ones = [plugrad.ones_like(result) for result in results]
                plugrad.autograd.grad(results, arguments.leaves, ones, allow_unused=True)
    except REFUSALS:
        pass


def _has_graph(result: Any) -> bool:
    return isinstance(result, plugrad.Tensor) and result.requires_grad
