"""Random programs: every value, flag, gradient and error is PyTorch's."""

from __future__ import annotations

import re
from math import inf

import plugrad
from plugrad.testing.random_programs import Program, difference, run_program
from tests.torture.finding import Finding, counts, oracle

NAME = "programs"
SHARE = 4.0
NEEDS = ("torch", "hypothesis")

_HEADER = """\
import plugrad, torch
from plugrad.testing.random_programs import Program, difference, run_program
program = Program.parse('''
{lines}
''')
ours, theirs = run_program(program, plugrad), run_program(program, torch)
print(difference(ours, theirs, words=False))
"""
NOISES = 4
"""How often it is tried whether noise changes a result, which then is no evidence."""
_WORD = re.compile(r"[A-Za-z_]{3,}")
_COMMON = {"leaf", "values", "True", "False", "None", "lib", "sum", "backward", "autograd", "clone"}


def prepare() -> None:
    """Load what is loaded at the first use."""
    plugrad.ones(2).sum()


def program_of(seed: int) -> str:
    from tests.torture.programs.writing import draw

    return source(draw(seed))


def source(program: Program) -> str:
    return _HEADER.format(lines="\n".join(s.text for s in program.statements))


def compare(program: Program) -> tuple[str, bool] | None:
    """Where the two libraries part, and whether it is only in numbers; None if nowhere."""
    import torch

    from tests.torture.programs.noise import Noise

    ours = run_program(program, plugrad)
    with oracle():
        theirs = run_program(program, torch)
    found = difference(ours, theirs, words=False)
    if found is None:
        return None
    numeric = difference(ours, theirs, tolerance=inf, words=False) is None
    if numeric:
        for seed in range(NOISES):
            with oracle(), Noise(seed) as noise:
                moved = run_program(program, torch)
            if noise.overlaps or difference(moved, theirs, words=False) is not None:
                counts["ill-conditioned"] += 1
                return None
    return found, numeric


def run_case(seed: int) -> Finding | None:
    from tests.torture.programs.reduction import reduced
    from tests.torture.programs.writing import draw

    program = draw(seed)
    counts["statements"] += len(program.statements)
    first = compare(program)
    if first is None:
        return None

    def fails(candidate: Program) -> bool:
        again = compare(candidate)
        return again is not None and again[1] == first[1]

    program = reduced(program, fails)
    found = compare(program)
    assert found is not None
    text, numeric = found
    side = _side(program) if numeric else ""
    if side == "ours":
        # PyTorch is wrong; docs/reliability.md lists where.
        counts["finite differences side with us"] += 1
        return None
    if _OVERWRITTEN.search(text) and not _is_wrong(program):
        # PyTorch's node kept its result, plugrad's what was not written to.
        counts["known differences"] += 1
        return None
    if _SPLIT.search(text) and _is_without_grad(program, text):
        # PyTorch refuses to look at the view, even where no gradient asks what became of it.
        counts["known differences"] += 1
        return None
    if _KNOWN.search(text) or (_STALE.search(text) and _RESHAPED.search(source(program))):
        counts["known differences"] += 1
        return None
    shown = program.statements
    if not numeric:
        # What defines the variable that differs says more than the way to it.
        name = text.partition(" ")[0]
        shown = tuple(s for s in shown if name in s.defines) or shown
    words = {word for s in shown for word in _WORD.findall(s.text)} - _COMMON
    kind = "numbers" if numeric else _kind(text)
    says = f"\nfinite differences agree with: {side}" if side else ""
    return Finding(
        f"programs: {kind}: {text}{says}",
        source(program),
        _class(kind, text) if kind == "raised" else f"{kind} {side} {' '.join(sorted(words))}",
    )


_KNOWN = re.compile(
    # PyTorch's node keeps a tensor that plugrad's does not need, and so cannot run again.
    r"only theirs: .*backward through the graph a second time|"
    # PyTorch has no second derivative of some operators.
    r"only theirs: .*the derivative for '\w+' is not implemented|"
    # PyTorch asks some operators for overlaps, plugrad all; PyTorch lets `out=` write to anything.
    r"only ours: .*(more than one element of the written-to tensor|to inference tensor outside)|"
    r"Could this error message be improved|"
    # A real view of complex numbers that were made part of the graph after it.
    r"only theirs: .*'a leaf Variable that requires grad is being used in an in-place operation"
)


_SPLIT = re.compile(r"only theirs: .*view and its base or another view of its base has been")
# PyTorch's accumulator of gradients still has the shape that a leaf had before.
_STALE = re.compile("theirs: .*returned an invalid gradient at index")
_RESHAPED = re.compile(r"no_grad\(\): \w+\.(t|transpose|squeeze|unsqueeze)_\(")
_OVERWRITTEN = re.compile("only theirs: .*has been modified by an inplace operation")


def _is_wrong(program: Program) -> bool:
    """Whether finite differences contradict plugrad's gradients."""
    from tests.torture.programs.finite_differences import contradicts

    return contradicts(program, run_program(program, plugrad)[1])


def _is_without_grad(program: Program, text: str) -> bool:
    """Whether the results of the statement that is spoken of have no gradient."""
    match = re.search(r"statement (\d+)", text)
    assert match is not None
    variables = run_program(program, plugrad)[1]
    found = [variables.get(name) for name in program.statements[int(match[1])].defines]
    return bool(found) and all(isinstance(value, dict) and not value["value"][1] for value in found)


def _side(program: Program) -> str:
    """Which library finite differences agree with, in double precision."""
    import torch

    from tests.torture.programs.finite_differences import verdict

    text = "\n".join(s.text for s in program.statements)
    for single, double in (
        ("float32", "float64"),
        ("complex64", "complex128"),
        ("float()", "double()"),
    ):
        text = text.replace(single, double)
    wide = Program.parse(text)
    if difference(run_program(wide, plugrad), run_program(wide, torch), words=False) is None:
        wide = program
    return verdict(wide, *(run_program(wide, lib)[1] for lib in (plugrad, torch)))


def _class(kind: str, text: str) -> str:
    """What exceptions have in common that are one fault."""
    words = [word for word in _WORD.findall(text) if word not in _COMMON]
    return " ".join([kind, *words[:14]])


def _kind(text: str) -> str:
    for word in ("raised", "is_leaf", "version", "view", "requires_grad", "output_nr", "grad"):
        if word in text:
            return word
    return "shape or dtype"
