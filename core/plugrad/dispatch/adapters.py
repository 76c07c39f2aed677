"""Makes kernels from functions that take only an operator's arguments.

If an operator that they call has no kernel, the error names the operator that the user called.
"""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import backend_by_number
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.missing_kernels import missing_kernel
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.errors import OperatorNotFoundError


@final
class WithoutKeyset:
    """Adapts a function of the operator's arguments alone to the kernel calling convention."""

    def __init__(self, function: Any, op: Operator) -> None:
        self.function = function
        self.op = op

    def __call__(self, keyset: i64, *args: Any) -> Any:
        function = self.function  # called as an attribute, it would be looked up by name
        try:
            return function(*args)
        except OperatorNotFoundError as error:
            raise needed_by(self.op, error) from None


@final
class CompositeKernel:
    """The kernel of an operator that the core composes from others.

    The generated `call_*` calls the function natively; this is for all other callers.
    """

    def __init__(self, function: Any, op: Operator) -> None:
        self.function = function
        self.op = op

    def __call__(self, keyset: i64, *args: Any) -> Any:
        function = self.function
        try:
            return function(*args)
        except OperatorNotFoundError as error:
            raise needed_by(self.op, error) from None


@final
class BelowAutograd:
    """Adapts a function that calls other operators and has a gradient formula.

    It runs after the Autograd key, so the operators it calls must not record again. For plugrad's
    own operators they do not autocast, either, because kernels would not.
    """

    def __init__(self, function: Any, op: Operator) -> None:
        self.function = function
        self.op = op
        self.kept: i64 = ~keys.AUTOGRAD_KEYS
        if op.namespace == "plugrad":
            self.kept = ~(keys.AUTOGRAD_KEYS | keys.AUTOCAST_BIT)

    def __call__(self, keyset: i64, *args: Any) -> Any:
        return self.compute(args)

    def compute(self, args: tuple[Any, ...]) -> Any:
        """Call the function on all arguments."""
        state = current_state()
        kept = state.kept
        state.kept = kept & self.kept
        function = self.function
        try:
            return function(*args)
        except OperatorNotFoundError as error:
            raise needed_by(self.op, error) from None
        finally:
            state.kept = kept


def needed_by(op: Operator, error: OperatorNotFoundError) -> OperatorNotFoundError:
    """The error of a primitive, reworded for the operator that is composed from it."""
    if not error.primitive:
        return error
    number = keys.backend_number(error.backend)
    active = backend_by_number(number) if number >= 0 else None
    key = error.backend if active is None else active.key_name
    primitive = find_operator(error.primitive)
    is_view = primitive is not None and primitive.schema.is_view
    return OperatorNotFoundError(
        missing_kernel(op.qualified_name, error.primitive, error.backend, key, is_view),
        operator=op.qualified_name,
        backend=error.backend,
        primitive=error.primitive,
    )
