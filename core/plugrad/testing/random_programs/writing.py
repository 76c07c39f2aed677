"""Random programs, drawn by hypothesis: tensors, operators, writes, hooks and backward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from plugrad.testing.random_programs import hooks, operators, passes, views, writes
from plugrad.testing.random_programs.choice import Choice
from plugrad.testing.random_programs.model import Draft
from plugrad.testing.random_programs.program import Program

Writer = Callable[[Draft, Choice], None]


@dataclass(frozen=True)
class Features:
    """What programs may contain in addition to operators, views and passes.

    Attributes:
        writes: in-place operators.
        functions: custom Functions.
        hooks: of tensors and nodes.
        faults: what raises: passes over freed graphs, Functions that fail, bad arguments.
        modes: statements in no_grad and inference mode.
        changes: to tensors themselves: `requires_grad_`, `detach_`, `data`, `grad`.
        devices: leaves on several devices, and copies from one to the other.
        dtypes: of leaves.
        passes: backward passes within the program; there is one at its end anyway.
    """

    writes: bool = True
    functions: bool = True
    hooks: bool = True
    faults: bool = True
    modes: bool = True
    changes: bool = True
    devices: int = 1
    dtypes: tuple[str, ...] = ("float64", "float64", "float64", "float32", "complex128")
    passes: bool = True


def _writers(features: Features) -> list[Writer]:
    chosen: list[Writer] = [*operators.WRITERS, *views.WRITERS]
    if features.writes:
        chosen += writes.WRITERS
    if features.changes:
        chosen += writes.CHANGES
    if features.functions:
        chosen += operators.FUNCTIONS
    if features.hooks:
        chosen += hooks.WRITERS
    if features.devices > 1:
        chosen.append(operators.transfer(features.devices))
    if features.passes:
        chosen += passes.WRITERS
    return chosen


def write_program(
    choice: Choice, features: Features, max_steps: int, more: Sequence[Writer] = ()
) -> Program:
    """A program of up to `max_steps` statements after its leaves, with a backward pass at the end.

    Args:
        more: writers to choose from, in addition to those that `features` names.
    """
    draft = Draft()
    operators.leaf(draft, choice, features.dtypes, features.devices, needs_grad=True)
    for _ in range(choice.number(0, 2)):
        operators.leaf(draft, choice, features.dtypes, features.devices)
    writers = [*_writers(features), *more]
    for _ in range(choice.number(1, max_steps)):
        choice.one_of(writers)(draft, choice)
    passes.final(draft, choice)
    return draft.program()


@st.composite
def programs(draw: st.DrawFn, features: Features = Features(), max_steps: int = 16) -> Program:
    """Programs as hypothesis draws them."""
    choice = Choice(lambda low, high: draw(st.integers(low, high)), features.faults, features.modes)
    return write_program(choice, features, max_steps)
