"""Statements of random programs that change tensors: in-place operators, flags, `data`, `grad`."""

from __future__ import annotations

from typing import Final

from plugrad.testing.random_programs.choice import Choice
from plugrad.testing.random_programs.model import Draft, Shape, Variable
from plugrad.testing.random_programs.operators import broadcast

_ALONE: Final = (
    *("{}.mul_(2.0)", "{}.add_(1.0)", "{}.zero_()", "{}.sin_()", "{}.neg_()", "{}.fill_(0.5)"),
    *("{}.tanh_()", "{} *= 0.5", "{}[...] = 0.25", "{}.clamp_(-0.5, 0.5)"),
)
_WITH: Final = (
    *("{}.add_({})", "{}.mul_({})", "{}.copy_({})", "{}.sub_({}, alpha=2)", "{}[...] = {}"),
    *("{} += {}", "{0}.addcmul_({1}, {1})"),
)


def _mode(choice: Choice, x: Variable) -> str:
    """Leaves that require grad can only be written to without recording."""
    return choice.mode(3 if x.needs_grad and not x.view else 8)


def _written(draft: Draft, x: Variable, source: Variable | None) -> None:
    """Variables that share the written memory may now be part of the graph."""
    if source is not None and source.needs_grad:
        for variable in draft.variables:
            if variable.memory == x.memory and not variable.is_integer:
                variable.needs_grad = True


def _source(draft: Draft, choice: Choice, x: Variable, shape: Shape) -> Variable | None:
    """What can be written into a part of `x` that has this shape."""
    place, is_complex = x.device, x.is_complex

    def accept(v: Variable) -> bool:
        # Where a real number is written into complex ones, PyTorch refuses the gradient.
        refused = is_complex and not v.is_complex and v.ndim == 0
        return v.device == place and not refused and broadcast([v.shape, shape]) == shape

    return choice.variable(draft, accept)


def alone(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    form = choice.one_of(_ALONE)
    if x is None or (x.is_complex and any(word in form for word in ("tanh", "clamp"))):
        return
    mode = _mode(choice, x)
    draft.add(f"{mode} {form.format(x.name)}".strip(), [x.name])


def with_another(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    if x is None:
        return
    y = _source(draft, choice, x, x.shape)
    if y is None:
        return
    form = choice.one_of(_WITH)
    # Reading memory that is being written to has no defined result.
    other = f"{y.name}.clone()" if x.memory == y.memory else y.name
    mode = _mode(choice, x)
    draft.add(f"{mode} {form.format(x.name, other)}".strip(), [x.name, y.name])
    if not mode:
        _written(draft, x, y)


def part(draft: Draft, choice: Choice) -> None:
    """Writes through an index."""
    x = choice.variable(draft, lambda v: v.ndim > 0)
    if x is None:
        return
    index = choice.one_of(("0", "-1:", "..., 0", "[0]"))
    shapes = {
        "0": x.shape[1:],
        "-1:": (1, *x.shape[1:]),
        "..., 0": x.shape[:-1],
        "[0]": (1, *x.shape[1:]),
    }
    y = _source(draft, choice, x, shapes[index])
    mode = _mode(choice, x)
    if y is None or choice.chance(3):
        draft.add(f"{mode} {x.name}[{index}] = 0.75".strip(), [x.name])
        return
    other = f"{y.name}.clone()" if x.memory == y.memory else y.name
    draft.add(f"{mode} {x.name}[{index}] = {other}".strip(), [x.name, y.name])
    if not mode:
        _written(draft, x, y)


def flag(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    if x is None:
        return
    value = not choice.chance(3)
    form = choice.one_of(("{}.requires_grad_({})", "{}.requires_grad = {}"))
    draft.add(form.format(x.name, value), [x.name])
    if value:
        x.needs_grad = True


def detach(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    if x is not None:
        draft.add(f"{x.name}.detach_()", [x.name])


def data(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: not v.inference)
    if x is None:
        return
    shape, place, dtype = x.shape, x.device, x.dtype
    y = choice.variable(draft, lambda v: (v.shape, v.device, v.dtype) == (shape, place, dtype))
    assert y is not None
    other = f"{y.name}.detach()" if x.name != y.name else f"{y.name}.detach().clone()"
    draft.add(f"{x.name}.data = {other}.clone()", [x.name, y.name])


def grad(draft: Draft, choice: Choice) -> None:
    """Changes to `.grad`, or its use as a tensor."""
    x = choice.grad_variable(draft)
    if x is None:
        return
    if choice.chance(3):
        draft.add(f"{x.name}.grad = None", [x.name])
        return
    form = choice.one_of(("{}.grad.zero_()", "{}.grad.mul_(2.0)", "{}.grad = {}.detach().clone()"))
    draft.add(form.format(x.name, x.name), [x.name])


def forget(draft: Draft, choice: Choice) -> None:
    """Delete a variable; the graph keeps what it needs."""
    if len(draft.variables) < 3:
        return
    x = choice.variable(draft)
    if x is not None:
        draft.variables.remove(x)
        draft.add(f"{x.name} = None", [x.name])


def look(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    if x is not None:
        draft.add(f"look({'look ' + x.name!r}, {x.name})", [x.name])


WRITERS: Final = [alone, with_another, alone, with_another, part]
CHANGES: Final = [flag, detach, data, grad, forget, look]
