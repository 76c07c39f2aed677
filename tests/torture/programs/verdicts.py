"""Which differences between two runs of a program are none of plugrad's faults, and why."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch

import plugrad
from plugrad.testing.random_programs import Program, Stage, Statement, difference, run_program
from tests.torture.finding import oracle

_OVERWRITTEN = re.compile(
    "has been modified by an inplace operation|detached in-place|"
    "its base or another view of its base has been modified"
)
_READ_DATA = re.compile(r"\.data\b(?! =)")
_NEW_DATA = re.compile(r"\.data = (.*)")
_REDUCTION = re.compile(
    r"\.(sum|mean|prod|amax|amin|max|min|var|std|logsumexp|norm|median|mode|kthvalue)\("
)


@dataclass(frozen=True)
class Parted:
    """A program on which the libraries part, and what the first difference is.

    Attributes:
        program: reduced to what shows the difference.
        text: the difference, as `difference` says it.
        numeric: whether only numbers differ.
    """

    program: Program
    text: str
    numeric: bool

    @property
    def source(self) -> str:
        return "\n".join(s.text for s in self.program.statements)

    def statement(self) -> Statement | None:
        """The statement that is spoken of, if one is."""
        match = re.search(r"statement (\d+)", self.text)
        return None if match is None else self.program.statements[int(match[1])]

    def ours(self) -> Any:
        return run_program(self.program, plugrad)

    def raised_by(self, name: str) -> bool:
        """Whether the variable that is written to has a name that begins with a letter of
        `name`."""
        statement = self.statement()
        found = None if statement is None else re.search(r"\b([a-z])\d+\b", statement.text)
        return found is not None and found[1] in name


def only_pytorch_keeps(parted: Parted) -> bool:
    """Whether PyTorch's nodes miss values that were overwritten, and plugrad is right without.

    Which tensors a node keeps is its own affair. PyTorch runs once more with copies of all that
    it keeps: what it computes then are the gradients of what was computed forward.
    """
    if not _OVERWRITTEN.search(parted.text.rpartition("theirs")[2]):
        return False
    ours = parted.ours()

    def copy(tensor: Any) -> Any:
        return tensor.detach().clone()

    with oracle(), torch.autograd.graph.saved_tensors_hooks(copy, lambda kept: kept):
        theirs = run_program(parted.program, torch)
    return difference(ours, theirs, words=False) is None


def hides_a_write(parted: Parted) -> bool:
    """Whether a value that a node needs was overwritten through `.data`, or other data were put in
    its place, which hides it.

    Through `detach()` the same write would be an error, in one of the libraries at least: which
    tensors a node keeps is its own affair.
    """
    shown = _NEW_DATA.sub(r".detach().copy_(\1)", _READ_DATA.sub(".detach()", parted.source))
    if not parted.numeric or shown == parted.source:
        return False
    open_ = Program.parse(shown)
    with oracle():
        events = run_program(open_, torch)[0] + run_program(open_, plugrad)[0]
    return any(what == "raised" and _OVERWRITTEN.search(str(value)) for _, what, value in events)


def first_other_layout(program: Program) -> Statement | None:
    """The first statement with a result that has another memory layout than in PyTorch."""
    ours, theirs = _strides(program, plugrad), _strides(program, torch)
    for mine, other, statement in zip(ours, theirs, program.statements, strict=True):
        for name in mine:
            if name in other and mine[name] != other[name]:
                return statement
    return None


def only_layout_decides(parted: Parted) -> bool:
    """Whether the libraries agree if results of several operands, or of a reduction, are
    contiguous.

    If operands have different layouts, PyTorch's results follow the first one, NumPy's none; the
    same holds if dimensions of a transposed tensor are reduced. What is a view, and what a copy,
    then depends on it.
    """
    program = parted.program
    for _ in program.statements:
        other = first_other_layout(program)
        if other is None:
            return False
        name, _, expression = other.text.partition(" = ")
        reduced = _REDUCTION.search(expression) is not None
        if len(re.findall(r"\b[vwg]\d+\b", expression)) < 2 and not reduced:
            return False
        made = f"({expression}).contiguous()"
        if len(other.defines) != 1:
            made = f"[made.contiguous() for made in {expression}]"
        ordered = replace(other, text=f"{name} = {made}")
        program = Program(tuple(ordered if s is other else s for s in program.statements))
        with oracle():
            theirs = run_program(program, torch)
        if difference(run_program(program, plugrad), theirs, words=False) is None:
            return True
    return False


def _strides(program: Program, lib: Any) -> list[dict[str, Any]]:
    """For each statement, the steps of what it defines, where there are several elements."""
    names = dict(Stage(lib).names)
    found: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in program.statements:
            found.append({})
            try:
                exec(statement.text, names)
                made = {name: names[name] for name in statement.defines if name[0] in "vwg"}
                for name, value in made.items():
                    steps = zip(value.stride(), value.shape, strict=True)
                    found[-1][name] = [step for step, size in steps if size > 1]
            except Exception:  # what raises defines nothing
                continue
    return found
