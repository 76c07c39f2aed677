"""Statements of random programs that run backward passes."""

from __future__ import annotations

from typing import Final

from plugrad.testing.random_programs.choice import Choice
from plugrad.testing.random_programs.model import Draft, Shape, Variable


def _outputs(draft: Draft, choice: Choice, most: int) -> list[Variable]:
    found = [choice.grad_variable(draft) for _ in range(choice.number(1, most))]
    return [variable for variable in found if variable is not None]


def _roots(draft: Draft, choice: Choice, most: int) -> list[Variable]:
    roots = _outputs(draft, choice, most)
    return roots * 2 if draft.several_roots and len(roots) == 1 else roots


def _given(x: Variable, choice: Choice, fault: bool = False) -> str:
    """A gradient for an output, or None where it can be left out; of a wrong shape if `fault`."""
    if x.numel == 1 and not x.is_complex and choice.chance(2):
        return "None"
    shape: Shape = (*x.shape, 2) if fault else x.shape
    place = f", {x.device}" if x.device else ""
    return f"values({shape}, {x.dtype!r}, {choice.seed()}{place})"


def _given_all(outputs: list[Variable], choice: Choice) -> str:
    # PyTorch finds words only for a first gradient of a wrong shape.
    fault = choice.fault(25)
    return _listed([_given(x, choice, fault and i == 0) for i, x in enumerate(outputs)])


def _listed(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


def _options(choice: Choice) -> str:
    text = ""
    create = choice.chance(3)
    if create:
        text += ", create_graph=True"
    if choice.chance(2) and not (create and choice.chance(2)):
        text += ", retain_graph=True"
    return text


def backward(draft: Draft, choice: Choice) -> None:
    outputs = _roots(draft, choice, 3)
    if not outputs:
        return
    names = [x.name for x in outputs]
    grads = _given_all(outputs, choice)
    options = _options(choice)
    uses = list(names)
    if choice.chance(4):
        inputs = [x.name for x in _outputs(draft, choice, 2)]
        options += f", inputs={_listed(inputs)}"
        uses += inputs
    if len(names) == 1 and choice.chance(2):
        draft.add(f"{names[0]}.backward({grads[1:-1]}{options})", uses)
        return
    draft.add(f"lib.autograd.backward({_listed(names)}, {grads}{options})", uses)


def grad(draft: Draft, choice: Choice) -> None:
    outputs, inputs = _roots(draft, choice, 2), _outputs(draft, choice, 3)
    if not outputs or not inputs:
        return
    names, wanted = [x.name for x in outputs], [x.name for x in inputs]
    grads = _given_all(outputs, choice)
    options = _options(choice)
    if not choice.fault(8):
        options += f", {choice.one_of(('allow_unused', 'allow_unused', 'materialize_grads'))}=True"
    call = f"lib.autograd.grad({_listed(names)}, {_listed(wanted)}, {grads}{options})"
    recorded = "create_graph" in options
    made = []
    memory = draft.fresh()  # gradients of several inputs may be one tensor
    for x in inputs:
        number = draft.fresh()
        made.append(
            Variable(f"g{number}", x.shape, x.dtype, memory, False, recorded, device=x.device)
        )
    left = ", ".join(x.name for x in made)
    draft.add(f"{left}, = {call}", names + wanted, [x.name for x in made])
    draft.variables.extend(made)


def whole(draft: Draft, choice: Choice) -> None:
    """Backward from a sum, as most do."""
    x = choice.grad_variable(draft, lambda v: not v.is_complex)
    if x is not None:
        options = _options(choice).removeprefix(", ")
        draft.add(f"{x.name}.sum().backward({options})", [x.name])


def final(draft: Draft, choice: Choice) -> None:
    """The last statement: whatever still can be is differentiated."""
    x = choice.grad_variable(draft, lambda v: not v.is_complex)
    y = choice.grad_variable(draft)
    if x is None or y is None:
        return
    given = f"[{_given(x, choice)}, {_given(y, choice)}]"
    draft.add(f"lib.autograd.backward([{x.name}, {y.name}], {given})", [x.name, y.name])


WRITERS: Final = [backward, grad, whole]
