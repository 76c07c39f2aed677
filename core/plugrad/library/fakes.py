"""Fakes: compute the shape and dtype of an operator's results, from tensors without data.

A fake is a kernel for the backend "meta". It runs on meta tensors and makes meta tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from plugrad.dispatch import keys
from plugrad.dispatch.keys import dispatch_key
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.scope import Scope, Swapped
from plugrad.errors import OperatorNotFoundError
from plugrad.library.kernels import call_on_tensors, written_results


class FakeContext:
    """The context that `get_ctx` returns in a fake, for sizes that depend on data.

    Attributes:
        sizes: the sizes that were requested: the number that represents it, its minimum and
            maximum.
    """

    def __init__(self, qualified_name: str, source: str) -> None:
        self._name = qualified_name
        self._source = source
        self.sizes: list[tuple[int, int, int | None]] = []

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that depends on data: it is at least `min` and, if that is given, at most `max`.

        It works only where sizes are symbolic, as in `opcheck`, which compares shapes.

        Raises:
            RuntimeError: the operator runs on meta tensors, which need a known shape.
            ValueError: `min` is negative.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"{self._name} ({self._source}): You're trying to run this operator with meta Tensors, "
            "but this operator may return an output Tensor with data-dependent shape. Meta Tensors "
            "don't support operators with outputs that have data-dependent shapes. If your "
            "operator does not return an output with data-dependent shape, make sure the fake does "
            "not call plugrad.library.get_ctx()."
        )


class SizesContext(FakeContext):
    """The context for checking a fake: sizes are numbers that occur nowhere else."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal "
                "to 0: this API can only create non-negative sizes."
            )
        # Primes that no test uses as a size.
        size = 1_000_003 + 2 * len(self.sizes)
        self.sizes.append((size, min, max))
        return size


class _Contexts:
    """The context of the running fake, and the context that a checker supplies."""

    def __init__(self) -> None:
        self.current: FakeContext | None = None
        self.wanted: FakeContext | None = None


_contexts = _Contexts()


def get_ctx() -> FakeContext:
    """The context of the fake that runs just now; see `register_fake`.

    Raises:
        RuntimeError: no fake is running.

    >>> import plugrad
    >>> @plugrad.library.custom_op("demo_sizes::positive", mutates_args=())
    ... def positive(x: plugrad.Tensor) -> plugrad.Tensor:
    ...     return x[x > 0]
    >>> @positive.register_fake
    ... def _(x):
    ...     count = plugrad.library.get_ctx().new_dynamic_size()
    ...     return x.new_empty(count)
    >>> positive(plugrad.tensor([-1.0, 2.0, 3.0]))
    tensor([2., 3.])
    """
    if _contexts.current is None:
        raise RuntimeError("get_ctx() may only be called inside of a fake (see register_fake)")
    return _contexts.current


class dynamic_sizes(Scope):
    """Context manager: allow fakes to request sizes that depend on data; returns the context, which
    lists the requested sizes."""

    def read(self, state: LocalState) -> Any:
        return _contexts.wanted

    def change(self, state: LocalState) -> None:
        self.context = SizesContext("", "")
        _contexts.wanted = self.context

    def restore(self, state: LocalState, before: Any) -> None:
        _contexts.wanted = before

    def value(self) -> SizesContext:
        return self.context


class FakeKernel:
    """The kernel of the key Meta that `register_fake` makes of a function on tensors."""

    def __init__(self, op: Operator, function: Callable[..., Any], source: str) -> None:
        self.op = op
        self.function = function
        self.source = source

    def __call__(self, keyset: int, *values: Any) -> Any:
        context = _contexts.wanted or FakeContext(self.op.qualified_name, self.source)
        with Swapped(_contexts, "current", context):
            return call_on_tensors(self.op, self.function, values)


class MissingFake:
    """The fake of an operator in Python that was given none.

    An operator that only writes, or returns the tensors that it writes to, needs none.
    """

    def __init__(self, op: Operator, shown: str, hint: str) -> None:
        self.op = op
        self.shown = shown
        self.hint = hint

    def __call__(self, keyset: int, *values: Any) -> Any:
        if self.op.schema.mutates:
            if not self.op.schema.returns:
                return None
            returned = written_results(self.op, values)
            if returned is not None:
                return returned
        raise OperatorNotFoundError(
            f"There was no fake impl registered for {self.shown}. This is necessary for tensors on "
            f"the device 'meta', which carry a shape but no data. Please use {self.hint} to add a "
            "fake impl."
        )


def check_fake(op: Operator) -> None:
    """RuntimeError if an operator needs no fake because it is composed of others."""
    if op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is not None:
        raise RuntimeError(
            f"register_fake(...): the operator {op.qualified_name} already has an implementation "
            "for CompositeImplicitAutograd. Such operators do not need a fake impl; instead, the "
            "operator will decompose into its constituents and those can have fake impls defined "
            "on them."
        )


def source_of(stacklevel: int) -> str:
    """File and line of a caller, `stacklevel` frames up."""
    frame = sys._getframe(stacklevel + 1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


META = dispatch_key("Meta")
