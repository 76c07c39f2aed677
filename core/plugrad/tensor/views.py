"""How a view was made: the operators that lead from its base to it, so that it can be made again.

ViewInfo   of each view: its base, and the last of
  ViewStep   operator, arguments  ─before─▶  ViewStep  ─before─▶  ...  the first takes the base
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch.local_state import current_state

if TYPE_CHECKING:
    from plugrad.dispatch.operator import Operator
    from plugrad.tensor.base import TensorBase

# How a view was made, which decides whether an in-place operator that is recorded may touch it.
CREATION_DEFAULT: Final = 0
IN_CUSTOM_FUNCTION: Final = 1
MULTI_OUTPUT_NODE: Final = 2
NO_GRAD_MODE: Final = 3
INFERENCE_MODE: Final = 4

AS_STRIDED: Final = "_as_strided"


# Replaces a step's position: from here on memory is shared, but not tangents.
PRIMAL_ONLY: Final = -2


@final
class ViewStep:
    """One of the operators that lead from a base to a view. Views of one another share what
    precedes.

    Attributes:
        before: the step before; None if the operator takes the base.
        op, arguments: the operator, and its arguments after the first.
        position: which of several results was taken; -1: there is one. Or `PRIMAL_ONLY`.
        count: how many steps there are up to this one.
        strided: whether one of them counts in memory, rather than in the base's elements.
        primal_only: whether one of them is `PRIMAL_ONLY`.
    """

    def __init__(
        self,
        before: ViewStep | None,
        op: Operator,
        arguments: tuple[Any, ...],
        position: int,
    ) -> None:
        self.before = before
        self.op = op
        self.arguments = arguments
        self.position = position
        self.count: i64 = 1
        self.strided: bool = op.name == AS_STRIDED
        self.primal_only: bool = position == PRIMAL_ONLY
        if before is not None:
            self.count += before.count
            self.strided = self.strided or before.strided
            self.primal_only = self.primal_only or before.primal_only


@final
class ViewInfo:
    """How a view was made from its base: the operators to apply, in order, with their arguments.

    Attributes:
        base: the tensor that is not a view itself.
        last: the last of the operators. The object is made on first use, because most views are
            freed before.
        version: the storage's version when the view's grad_fn was last made.
        creation_meta: `CREATION_DEFAULT`, or why the view cannot be written to under autograd.
        geometries: how many of the storage's former geometries the steps take into account.
    """

    def __init__(
        self,
        base: TensorBase,
        before: ViewStep | None,
        op: Operator,
        arguments: tuple[Any, ...],
        position: int,
        version: i64,
        creation_meta: i64,
    ) -> None:
        self.base = base
        self._before = before
        self._op = op
        self._arguments = arguments
        self._position = position
        self._last: ViewStep | None = None
        self.version: i64 = version
        self.creation_meta: i64 = creation_meta
        self.geometries: i64 = 0

    @property
    def last(self) -> ViewStep:
        last = self._last
        if last is None:
            last = ViewStep(self._before, self._op, self._arguments, self._position)
            self._last = last
        return last

    @last.setter
    def last(self, last: ViewStep) -> None:
        self._last = last

    def replay(self, base: TensorBase) -> TensorBase:
        """The same view of another tensor of the base's shape; see `replay_view`."""
        return replay_view(steps_up_to(self.last), base, 0)


def steps_up_to(last: ViewStep) -> list[tuple[Operator, tuple[Any, ...], int]]:
    """The steps of a view as triples of operator, arguments and position, the first one first."""
    found: list[tuple[Operator, tuple[Any, ...], int]] = []
    step: ViewStep | None = last
    while step is not None:
        found.append((step.op, step.arguments, step.position))
        step = step.before
    found.reverse()
    return found


def replay_view(
    steps: list[tuple[Operator, tuple[Any, ...], int]], base: TensorBase, shift: int
) -> TensorBase:
    """The view that `steps` lead to from another tensor of the shape of their base.

    If they depend on strides, it must have the base's strides, too; `shift` is how much later
    than the base it starts in its memory, in elements.
    """
    result: Any = base
    state = current_state()
    for op, arguments, position in steps:
        source: TensorBase = result
        if shift != 0:
            if op.name == AS_STRIDED:
                size, stride, offset, input_stride, input_offset = arguments
                arguments = (size, stride, offset + shift, input_stride, input_offset + shift)
            elif op.name == "view_as_complex":
                shift //= 2
            elif op.name == "_view_dtype":
                shift = shift * source.dtype.itemsize // arguments[0].itemsize
            elif op.name in ("real", "imag", "view_as_real") and source.dtype.is_complex:
                shift *= 2
        keyset = (source._keyset | state.included) & state.kept
        if state.trace is not None:
            result = state.trace.dispatch("call", op, keyset, (source, *arguments))
        else:
            result = op.lookup(keyset)(keyset, source, *arguments)
        if position >= 0:
            result = result[position]
    view: TensorBase = result
    return view


def propagate_creation_meta(previous: i64, new: i64) -> i64:
    """The creation meta of a view of a view: a new one never permits more than the previous."""
    return previous if new == CREATION_DEFAULT or previous == INFERENCE_MODE else new
