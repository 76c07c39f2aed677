"""Whose gradient is right, ours or PyTorch's: finite differences in double precision."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import torch

from plugrad.testing.random_programs import Program, Stage

STEP = 1e-6
_BACKWARD = re.compile(r"^(?P<root>(?!lib\.).+)\.backward\((?P<given>.*)\)$")
_LISTS = re.compile(r"^lib\.autograd\.backward\((?P<lists>.*)\)$")


def verdict(program: Program, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Which run's gradients of the leaves finite differences agree with.

    They can tell if the program has one backward pass, at its end, and leaves of float64; `ours`
    and `theirs` are the variables as `run_program` gives them.
    """
    *before, last = program.statements
    if any(word in s.text for s in before for word in ("backward", "grad(", "hook")):
        return "cannot tell"
    leaves = [s.defines[0] for s in before if " = leaf(" in s.text and "'float64'" in s.text]
    sides = {"ours": 0, "PyTorch": 0}
    for name in leaves:
        grads = [run.get(name, {}).get("grad") for run in (ours, theirs)]
        if grads[0] is None or grads[1] is None or np.allclose(grads[0][2], grads[1][2], 1e-6):
            continue
        try:
            expected = _gradient(before, last.text, name)
        except Exception:
            return "cannot tell"
        if expected is None:
            return "cannot tell"
        for side, grad in zip(sides, grads, strict=True):
            sides[side] += bool(np.allclose(grad[2], expected, 1e-4, 1e-4))
    right = [side for side, count in sides.items() if count]
    return right[0] if len(right) == 1 else "neither"


def contradicts(program: Program, ours: dict[str, Any]) -> bool:
    """Whether a gradient of a float64 leaf differs from finite differences, where they can tell."""
    *before, last = program.statements
    if any(word in s.text for s in before for word in ("backward", "grad(", "hook")):
        return False
    for name in (s.defines[0] for s in before if " = leaf(" in s.text and "'float64'" in s.text):
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
    expected = np.zeros(base.shape)
    for place in np.ndindex(*base.shape):
        values = []
        for sign in (1.0, -1.0):
            moved = base.copy()
            moved[place] += sign * STEP
            values.append(_value(before, last, name, moved))
        if None in values:
            return None
        expected[place] = (values[0] - values[1]) / (2 * STEP)
    return expected


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
