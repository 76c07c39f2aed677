"""Writes random programs; what a statement of `forms` gives is found by running it on PyTorch."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

import plugrad
from plugrad.testing.random_programs import Features, Program, Stage, write_program
from plugrad.testing.random_programs.choice import Choice
from plugrad.testing.random_programs.model import Draft, Shape, Variable
from tests.torture.programs.forms import OPERATORS, VIEWS, WRITES, Form

LARGEST = 48  # elements of a variable
DTYPES = ("float64", "float64", "float64", "float32", "complex128")


@dataclass(frozen=True)
class Result:
    shape: Shape
    dtype: str
    shares: bool
    contiguous: bool
    node: bool


@cache
def _function(form: str) -> Callable[..., Any]:
    """The form as a function of the library and of its operands."""
    text = form.format("x0", "x1", "x2")
    names: dict[str, Any] = {}
    try:
        exec(f"def run(lib, x0, x1, x2):\n    return {text}", names)
    except SyntaxError:
        exec(f"def run(lib, x0, x1, x2):\n    {text}", names)
    run: Callable[..., Any] = names["run"]
    return run


@cache
def _sample(shape: Shape, dtype: str) -> torch.Tensor:
    made: torch.Tensor = Stage(torch).values(shape, dtype, 0)
    return made


@cache
def infer(form: str, kinds: tuple[tuple[Shape, str], ...]) -> tuple[Result, ...] | None:
    """What a form gives for operands of these shapes and dtypes; None if it raises."""
    operands: list[torch.Tensor | None] = [_sample(*kind).clone() for kind in kinds]
    padded = [*operands, None, None][:3]
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            found = _function(form)(torch, *padded)
    except Exception:
        return None
    results = found if isinstance(found, (tuple, list)) else (found,)
    if not all(isinstance(result, torch.Tensor) for result in results):
        return ()
    first = operands[0]
    assert first is not None
    # What is an operand itself has no node of its own.
    nodes = _nodes(form, kinds, torch)
    node = bool(nodes) and nodes == _nodes(form, kinds, plugrad)
    return tuple(
        Result(
            tuple(result.shape),
            str(result.dtype).partition(".")[2],
            result.untyped_storage().data_ptr() == first.untyped_storage().data_ptr(),
            result.is_contiguous(),
            node,
        )
        for result in results
    )


def _nodes(form: str, kinds: tuple[tuple[Shape, str], ...], lib: Any) -> Any:
    """The graph right behind the results: what hooks of its nodes see is alike if it is."""
    stage = Stage(lib)
    operands = [stage.values(*kind, 0) for kind in kinds]
    for operand in operands:
        if operand.is_floating_point() or operand.is_complex():
            operand.requires_grad_()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _function(form)(lib, *[*operands, None, None][:3])
    except Exception:
        return None
    results = found if isinstance(found, (tuple, list)) else (found,)
    nodes = [result.grad_fn for result in results if result.grad_fn is not None]
    return [(_name(node), [_name(edge[0]) for edge in node.next_functions]) for node in nodes]


def _name(node: Any) -> str:
    return "" if node is None else str(node.name().rpartition("::")[2])


def _accepts(kind: str) -> Callable[[Variable], bool]:
    letter, least = kind[0], int(kind[1:] or 0)

    def accept(v: Variable) -> bool:
        if v.ndim < least or not v.numel:
            return False
        match letter:
            case "f":
                return v.dtype.startswith("float")
            case "c":
                return v.dtype.startswith(("float", "complex"))
            case "i":
                return v.dtype.startswith("int")
            case "b":
                return v.dtype == "bool"
        return True

    return accept


def pick(
    draft: Draft, choice: Choice, kinds: Sequence[str], ordered: bool = False
) -> list[Variable] | None:
    """Operands, rather new ones.

    Args:
        ordered: only operands that are certainly contiguous.
    """
    found = []
    for kind in kinds:
        usable = [v for v in draft.variables if _accepts(kind)(v) and (v.contiguous or not ordered)]
        if not usable:
            if kind[0] not in "ib":
                return None
            usable = [leaf(draft, choice, "bool" if kind[0] == "b" else "int64")]
        back = min(choice.number(0, len(usable) - 1), choice.number(0, len(usable) - 1))
        found.append(usable[len(usable) - 1 - back])
    return found


def leaf(draft: Draft, choice: Choice, dtype: str) -> Variable:
    """Integers or bools, which take no part in gradients."""
    shape = draft.variables[-1].shape if draft.variables and choice.chance(2) else (3,)
    number = draft.fresh()
    name = f"v{number}"
    draft.add(f"{name} = values({shape}, {dtype!r}, {choice.seed()})", [], [name])
    draft.variables.append(Variable(name, shape, dtype, number))
    return draft.variables[-1]


def _kinds(operands: Sequence[Variable]) -> tuple[tuple[Shape, str], ...]:
    return tuple((v.shape, v.dtype) for v in operands)


def _writer(forms: Sequence[Form]) -> Callable[[Draft, Choice], None]:
    """Writes statements that bind results to new variables."""

    def write(draft: Draft, choice: Choice) -> None:
        form, kinds = choice.one_of(forms)
        # What as_strided shows of other operands is a matter of the memory behind them.
        operands = pick(draft, choice, kinds, "{0}.as_strided(" in form)
        if operands is None:
            return
        results = infer(form, _kinds(operands))
        names = [v.name for v in operands]
        text = form.format(*names)
        if results is None:
            if choice.fault(8):
                draft.add(text, names)
            return
        size = 1
        for result in results:
            for length in result.shape:
                size *= length
        if not results or len(results) > 4 or size > LARGEST:
            return
        shares = any(result.shares for result in results)
        made = draft.define(
            text,
            operands,
            [result.shape for result in results],
            dtype=[result.dtype for result in results],
            view=shares,
            needs_grad=False if "detach" in form or ".data" in form else None,
            prefix="v" if shares else "w",
            mode=choice.mode(),
            several=len(results) == 1 and any(word in form for word in SEVERAL),
        )
        for variable, result in zip(made, results, strict=True):
            variable.node = result.node
            variable.contiguous = result.contiguous and all(v.contiguous for v in operands)

    return write


SEVERAL = ("unbind", "split", "chunk")


def write(draft: Draft, choice: Choice) -> None:
    """Writes statements that change their first operand."""
    form, kinds = choice.one_of(WRITES)
    operands = pick(draft, choice, kinds)
    if operands is None:
        return
    results = infer(form, _kinds(operands))
    if results is None and not choice.fault(8):
        return
    target = operands[0]
    # What is read must not be what is written to at the same time.
    others = [f"{v.name}.clone()" if v.memory == target.memory else v.name for v in operands[1:]]
    mode = choice.mode(3 if target.needs_grad and not target.view else 8)
    text = f"{mode} {form.format(target.name, *others)}".strip()
    draft.add(text, [v.name for v in operands])
    if not mode and any(v.needs_grad for v in operands):
        for variable in draft.variables:
            if variable.memory == target.memory and not variable.is_integer:
                variable.needs_grad = True
                # An in-place operator may be composed of other operators than PyTorch's.
                variable.node = False
    if results and results[0].shares and form.startswith("{0}."):
        target.shape = results[0].shape
        target.contiguous = target.contiguous and results[0].contiguous


WRITERS = [_writer(OPERATORS)] * 16 + [_writer(VIEWS)] * 8 + [write] * 7


def draw(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)

    def number(low: int, high: int) -> int:
        return low + int(rng.random() * (high - low + 1))

    faults, modes = rng.random() < 0.3, rng.random() < 0.4
    features = Features(
        writes=rng.random() < 0.7,
        functions=rng.random() < 0.3,
        hooks=rng.random() < 0.3,
        faults=faults,
        modes=modes,
        changes=rng.random() < 0.3,
        dtypes=DTYPES,
    )
    more = [w for w in WRITERS if features.writes or w is not write]
    return write_program(Choice(number, faults, modes), features, number(5, 20), more)
