"""Forward rules: they compute the tangents of an operator's results from its arguments' tangents.

An operator's YAML entry defines the rule. `forward: auto_linear` (`Linear`) and operators that are
linear in each argument separately (`Multilinear`) need no code; for all others the generator writes
a function (`_generated/forward_rules.py`). All of them are called as

    rule.tangents(args, tangents, out) -> tangents of the results, None for zero

with the operator's arguments and results, and one entry for each differentiable argument: its
tangent, None if it has none, or a list of these if the argument is a list. They call operators,
with forward mode off, so that tangents have gradients.
"""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.graph.support import operators
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.kernel_factory import keyset_of


class ForwardRule:
    """The data that the kernel for `ForwardAD` needs about an operator.

    Attributes:
        positions: the positions of its differentiable arguments.
        needs_self: for each of them, whether its part of the rule needs the former value of the
            first argument, which matters for in-place operators.
        in_place: whether the rule itself writes to the tangent of the first argument.
        saved: fields of the operator's node that hold results, and which ones.
    """

    def __init__(
        self,
        positions: tuple[int, ...],
        needs_self: tuple[bool, ...] = (),
        saved: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self.positions = positions
        self.needs_self: tuple[bool, ...] = needs_self or (False,) * len(positions)
        self.saved = saved
        self.in_place: bool = False

    def tangents(self, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
        """The tangents of the results."""
        raise NotImplementedError


@final
class Formula(ForwardRule):
    """A rule that is a function of arguments, tangents and results."""

    def __init__(
        self,
        function: Any,
        positions: tuple[int, ...],
        needs_self: tuple[bool, ...] = (),
        saved: tuple[tuple[str, int], ...] = (),
    ) -> None:
        super().__init__(positions, needs_self, saved)
        self.function: Any = function

    def tangents(self, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
        return self.function(args, tangents, out)


@final
class Linear(ForwardRule):
    """Linear in all its differentiable arguments together: the operator, on their tangents."""

    def __init__(
        self,
        op: Operator,
        positions: tuple[int, ...],
        saved: tuple[tuple[str, int], ...] = (),
        in_place: bool = False,
    ) -> None:
        super().__init__(positions, (), saved)
        self.op = op
        self.in_place = in_place

    def tangents(self, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
        values = list(args)
        for number, position in enumerate(self.positions):
            values[position] = materialized(tangents[number], args[position])
        return call(self.op, tuple(values))


@final
class Multilinear(ForwardRule):
    """Linear in each of its differentiable arguments: the operator with a tangent in the place of
    one of them, added up."""

    def __init__(
        self,
        op: Operator,
        positions: tuple[int, ...],
        saved: tuple[tuple[str, int], ...] = (),
    ) -> None:
        needs_self = tuple([position > 0 for position in positions])
        super().__init__(positions, needs_self, saved)
        self.op = op

    def tangents(self, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
        total: Any = None
        for number, position in enumerate(self.positions):
            tangent: Any = tangents[number]
            if tangent is not None:
                values = list(args)
                values[position] = tangent
                total = plus(total, call(self.op, tuple(values)))
        return total


def no_tangents(args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
    """The rule of an operator with results that do not depend on its arguments: all tangents are
    zero."""
    return None


def call(op: Operator, values: tuple[Any, ...]) -> Any:
    """Call an operator from a rule, where it is called with other key sets than elsewhere."""
    state = current_state()
    keyset: i64 = (keyset_of(values) | state.included) & state.kept
    if state.trace is not None:
        return state.trace.dispatch("call", op, keyset, values)
    return op.lookup_forward(keyset)(keyset, *values)


def one_by_one(value: Any, count: int) -> list[list[Any]]:
    """Lists of gradients for several results, each with only one of them given."""
    return [[value if k == number else None for k in range(count)] for number in range(count)]


def plus(total: Any, term: Any) -> Any:
    """The sum of two tangents, or of several by several; None is zero."""
    if total is None:
        return term
    if term is None:
        return total
    if isinstance(total, TensorBase):
        return operators["add.Tensor"](total, term)
    return [plus(a, b) for a, b in zip(total, term, strict=True)]


def materialized(tangent: Any, primal: Any) -> Any:
    """A tangent, with zeros where there is none."""
    if isinstance(primal, (list, tuple)):
        if tangent is None:
            tangent = [None] * len(primal)
        return [materialized(t, p) for t, p in zip(tangent, primal, strict=True)]
    if tangent is None and primal is not None:
        return operators["zeros_like"](primal)
    return tangent
