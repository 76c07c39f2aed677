"""Statements of random programs that take views."""

from __future__ import annotations

from typing import Final

from plugrad.testing.random_programs.choice import Choice
from plugrad.testing.random_programs.model import Draft, Shape, Variable


def _forms(x: Variable, choice: Choice) -> list[tuple[str, Shape]]:
    """Views of one tensor that can be taken of `x`, and their shapes."""
    forms: list[tuple[str, Shape]] = [
        ("{}.view_as({})", x.shape),
        ("{}.unsqueeze(0)", (1, *x.shape)),
        ("{}[None]", (1, *x.shape)),
    ]
    if x.contiguous:
        forms.append(("{}.view(-1)", (x.numel,)))
        forms.append(("{}.reshape(1, -1)", (1, x.numel)))
    if x.contiguous and x.numel >= 2:
        forms.append(("{}.as_strided((2,), (1,))", (2,)))
        forms.append(("{}.as_strided((2, 2), (1, 0))", (2, 2)))
    if x.ndim > 0:
        index = choice.number(0, x.shape[0] - 1)
        forms += [
            (f"{{}}[{index}]", x.shape[1:]),
            (f"{{}}[{index}:]", (x.shape[0] - index, *x.shape[1:])),
            (f"{{}}.select(-1, {x.shape[-1] - 1})", x.shape[:-1]),
            (f"{{}}.narrow(0, {index}, 1)", (1, *x.shape[1:])),
            ("{}.squeeze(0)", x.shape[1:] if x.shape[0] == 1 else x.shape),
            ("{}[..., ::2]", (*x.shape[:-1], (x.shape[-1] + 1) // 2)),
        ]
    if x.ndim == 1:
        forms.append(("{}.expand(2, -1)", (2, *x.shape)))
    if x.ndim > 1:
        forms += [
            ("{}.transpose(0, -1)", (x.shape[-1], *x.shape[1:-1], x.shape[0])),
            ("{}.mT", (*x.shape[:-2], x.shape[-1], x.shape[-2])),
            ("{}.movedim(0, -1)", (*x.shape[1:], x.shape[0])),
        ]
    if x.ndim == 2:
        forms.append(("{}.diagonal()", (min(x.shape),)))
        forms.append(("{}.t()", x.shape[::-1]))
    if not x.shape:
        forms.append(("{}.expand(3)", (3,)))
    return forms


_KEEP_ORDER: Final = ("view", "unsqueeze", "None", "reshape")


def view(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: v.ndim < 4)
    if x is None:
        return
    form, shape = choice.one_of(_forms(x, choice))
    draft.define(
        form.format(x.name, x.name),
        [x],
        [shape],
        view=True,
        contiguous=x.contiguous and any(word in form for word in _KEEP_ORDER),
        mode=choice.mode(8),
    )


def several_views(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: v.ndim > 0 and v.shape[0] > 0)
    if x is None:
        return
    first, rest = x.shape[0], x.shape[1:]
    pieces: list[tuple[str, list[Shape]]] = [
        ("{}.unbind(0)", [rest] * first),
        ("{}.split(2, 0)", [(min(2, first - i), *rest) for i in range(0, first, 2)]),
        (
            "{}.chunk(2, 0)",
            [(min(-(-first // 2), first - i), *rest) for i in range(0, first, -(-first // 2))],
        ),
    ]
    form, shapes = choice.one_of(pieces)
    draft.define(form.format(x.name), [x], shapes, view=True, several=True, mode=choice.mode())


def detached(draft: Draft, choice: Choice) -> None:
    """What shares memory, not history."""
    x = choice.variable(draft, lambda v: not v.inference)
    if x is None:
        return
    form = choice.one_of(("{}.detach()", "{}.data", "{}.detach().requires_grad_()"))
    draft.define(
        form.format(x.name),
        [x],
        [x.shape],
        view=True,
        contiguous=x.contiguous,
        needs_grad="requires" in form,
    )


def complex_views(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: v.is_complex)
    if x is None:
        return
    real = "float32" if x.dtype == "complex64" else "float64"
    forms: list[tuple[str, Shape]] = [
        ("{}.real", x.shape),
        ("{}.imag", x.shape),
    ]
    form, shape = choice.one_of(forms)
    for made in draft.define(
        form.format(x.name), [x], [shape], dtype=real, view=True, mode=choice.mode()
    ):
        made.node = False  # PyTorch's is of a view that shows both parts


WRITERS: Final = [view, view, view, several_views, detached, complex_views]
