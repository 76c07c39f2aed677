"""Decides whether our gradient or PyTorch's is right: finite differences in double precision."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import torch

from plugrad.testing.random_programs import Program, Stage

STEP = 2e-3
SMALL = 1e-6  # as wide as the place of a kink is looked for
# How often the step is taken, and with which weight: a rule of sixth order, which in double
# precision distinguishes a gradient from one that was computed in single precision.
RULE = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
_PASSES = ("backward", "grad(", "hook")
_CUTS = ("detach", ".data", "no_grad", "inference", "requires_grad", ".apply(")
"""Code that makes a gradient differ from the values' derivative."""
_FLOATING = ("'float64'", "'complex128'")
_BACKWARD = re.compile(r"^(?P<root>(?!lib\.).+)\.backward\((?P<given>.*)\)$")
_LISTS = re.compile(r"^lib\.autograd\.backward\((?P<lists>.*)\)$")


def verdict(program: Program, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """The run with gradients of the leaves that agree with finite differences.

    This can be decided if the program has one backward pass, at its end, and leaves in double
    precision; `ours` and `theirs` are the variables as `run_program` gives them.
    """
    *before, last = program.statements
    if any(word in s.text for s in before for word in (*_PASSES, *_CUTS)):
        return "cannot tell"
    sides = {"ours": 0, "PyTorch": 0}
    for name in _leaves(before):
        grads = [run.get(name, {}).get("grad") for run in (ours, theirs)]
        if (
            grads[0] is None
            or grads[1] is None
            or np.allclose(grads[0][2], grads[1][2], 1e-9, 1e-9)
        ):
            continue
        try:
            expected = _gradient(before, last.text, name)
        except Exception:
            return "cannot tell"
        if expected is None:
            return "cannot tell"
        errors = [float(np.abs(grad[2] - expected).max()) for grad in grads]
        scale = max(1.0, float(np.abs(expected).max()))
        for side, error, other in zip(sides, errors, reversed(errors), strict=True):
            sides[side] += error < 1e-4 * scale and error < 0.05 * other
    right = [side for side, count in sides.items() if count]
    return right[0] if len(right) == 1 else "neither"


def _leaves(before: list[Any]) -> list[str]:
    return [
        s.defines[0] for s in before if " = leaf(" in s.text and any(d in s.text for d in _FLOATING)
    ]


def contradicts(program: Program, ours: dict[str, Any]) -> bool:
    """Whether a gradient differs from finite differences, in double precision, if this can be
    decided."""
    *before, last = program.statements
    if any(word in s.text for s in before for word in _PASSES):
        return False
    for name in _leaves(before):
        grad = ours.get(name, {}).get("grad")
        try:
            expected = None if grad is None else _gradient(before, last.text, name)
        except Exception:
            return False
        if expected is not None and not np.allclose(grad[2], expected, 1e-4, 1e-4):
            return True
    return False


def _gradient(before: list[Any], last: str, name: str) -> Any:
    base = np.asarray(_leaf(before, name).detach().numpy())
    expected = np.zeros(base.shape, base.dtype)
    for place in np.ndindex(*base.shape):
        for direction in (1.0, 1.0j) if base.dtype.kind == "c" else (1.0,):
            if _has_kink(before, last, name, base, place, direction):
                return None
            slope = 0.0
            for times, weight in RULE:
                for sign in (1.0, -1.0):
                    moved = base.copy()
                    moved[place] += sign * times * STEP * direction
                    value = _value(before, last, name, moved)
                    if value is None:
                        return None
                    slope += sign * weight * value / STEP
            expected[place] += slope * direction
    return expected


def _has_kink(
    before: list[Any], last: str, name: str, base: Any, place: Any, direction: complex
) -> bool:
    """Whether the slopes on both sides differ, so that there is no derivative to compare with."""
    values = []
    for sign in (0.0, 1.0, -1.0):
        moved = base.copy()
        moved[place] += sign * SMALL * direction
        value = _value(before, last, name, moved)
        if value is None:
            return True
        values.append(value)
    scale = max(1.0, abs(values[0]))
    return abs(values[1] - 2 * values[0] + values[2]) > 1e-3 * SMALL * scale


def _leaf(before: list[Any], name: str) -> torch.Tensor:
    names = dict(Stage(torch).names)
    statement = next(s for s in before if s.defines == (name,))
    exec(statement.text, names)
    made: torch.Tensor = names[name]
    return made


def _value(before: list[Any], last: str, name: str, moved: Any) -> float | None:
    """What is differentiated, weighted with the gradients that the pass is given."""
    names = dict(Stage(torch).names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in before:
            exec(statement.text, names)
            if statement.defines == (name,):
                names[name] = torch.tensor(moved, requires_grad=True)
        names["pick"] = lambda roots, grads=None, **options: (roots, grads)
        if match := _BACKWARD.match(last):
            root, given = eval(f"pick({match['root']}, {match['given']})", names)
            roots, grads = [root], [given]
        elif match := _LISTS.match(last):
            roots, grads = eval(f"pick({match['lists']})", names)
        else:
            return None
    total = 0.0
    for root, given in zip(roots, grads or [None] * len(roots), strict=True):
        weight = torch.ones_like(root) if given is None else given
        total += float((root.detach() * weight.conj()).real.sum())
    return total
