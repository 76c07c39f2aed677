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
    # Where shapes differ, or who raises, noise has to change these: a mask may depend on rounding.
    tolerance = None if numeric else inf
    for seed in range(NOISES):
        with oracle(), Noise(seed) as noise:
            moved = run_program(program, torch)
        overlaps = numeric and noise.overlaps
        if overlaps or difference(moved, theirs, tolerance=tolerance, words=False) is not None:
            counts["ill-conditioned"] += 1
            return None
    return found, numeric


def run_case(seed: int) -> Finding | None:
    from tests.torture.known.programs import known_parting
    from tests.torture.programs.reduction import reduced
    from tests.torture.programs.verdicts import (
        Parted,
        hides_a_write,
        only_layout_decides,
        only_pytorch_keeps,
    )
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
    parted = Parted(program, text, numeric)
    if (
        only_pytorch_keeps(parted)
        or hides_a_write(parted)
        or only_layout_decides(parted)
        or known_parting(parted)
    ):
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
