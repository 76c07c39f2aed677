"""Statements of random programs that compute: leaves, operators, custom Functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from plugrad.testing.random_programs.choice import Choice
from plugrad.testing.random_programs.functions import SIGNATURES
from plugrad.testing.random_programs.model import Draft, Shape, Variable

SHAPES: Final[tuple[Shape, ...]] = ((), (3,), (1,), (2, 3), (3, 3), (2, 1), (1, 3), (2, 1, 3))
_UNARY: Final = (
    *("{}.sin()", "{} * 0.5", "-{}", "{} + 1.5", "2.0 - {}", "{} ** 2", "{} / 2", "{}.clone()"),
    *("{}.tanh()", "{}.sigmoid()", "{} * {}", "{}.exp().sigmoid()", "{}.abs()", "{}.relu()"),
    *("{}.clamp(-0.5, 0.5)", "{}.contiguous()", "lib.zeros_like({})"),
)
_REAL_ONLY: Final = ("tanh", "sigmoid", "abs", "relu", "clamp")
_BINARY: Final = (
    *("{} + {}", "{} * {}", "{} - {}", "lib.where({0} > 0, {0}, {1})", "lib.maximum({}, {})"),
    *("lib.add({}, {}, alpha=2)", "{} / ({} ** 2 + 1.0)"),
)


def promoted(dtypes: list[str]) -> str:
    return str(np.result_type(*dtypes))


def broadcast(shapes: list[Shape]) -> Shape | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def leaf(
    draft: Draft,
    choice: Choice,
    dtypes: tuple[str, ...] = ("float64",),
    devices: int = 1,
    needs_grad: bool | None = None,
) -> None:
    shape = choice.one_of(SHAPES)
    dtype = choice.one_of(dtypes)
    flag = needs_grad if needs_grad is not None else not choice.chance(3)
    device = choice.number(0, devices - 1)
    number = draft.fresh()
    name = f"v{number}"
    place = f", {device}" if device else ""
    draft.add(f"{name} = leaf({shape}, {dtype!r}, {choice.seed()}, {flag}{place})", [], [name])
    draft.variables.append(Variable(name, shape, dtype, number, True, flag, device=device))


def new_leaf(draft: Draft, choice: Choice) -> None:
    leaf(draft, choice)


def unary(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    form = choice.one_of(_UNARY)
    if x is None or (x.is_complex and any(name in form for name in _REAL_ONLY)):
        return
    count = form.count("{}")
    draft.define(
        form.format(*[x.name] * count),
        [x],
        [x.shape],
        view=form == "{}.contiguous()",
        contiguous=x.contiguous,
        needs_grad=False if "zeros_like" in form else None,
        mode=choice.mode(),
    )


def binary(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    y = partner(draft, choice, x)
    form = choice.one_of(_BINARY)
    if x is None or y is None:
        return
    if (x.is_complex or y.is_complex) and ("where" in form or "maximum" in form):
        return
    shape = broadcast([x.shape, y.shape])
    assert shape is not None
    draft.define(
        form.format(x.name, y.name),
        [x, y],
        [shape],
        dtype=promoted([x.dtype, y.dtype]),
        contiguous=x.contiguous and y.contiguous and x.shape == y.shape,
        mode=choice.mode(),
    )


def partner(draft: Draft, choice: Choice, x: Variable | None) -> Variable | None:
    """A variable that can meet `x` in a binary operator."""
    if x is None:
        return None
    place, shape = x.device, x.shape
    return choice.variable(
        draft, lambda v: v.device == place and broadcast([v.shape, shape]) is not None
    )


def reduction(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: v.ndim > 0)
    if x is None:
        return
    forms: list[tuple[str, Shape]] = [
        ("{}.sum()", ()),
        ("{}.sum(0)", x.shape[1:]),
        ("{}.mean(-1, keepdim=True)", (*x.shape[:-1], 1)),
        ("{}.mean()", ()),
        ("{}.cumsum(0)", x.shape),
        ("{}.sum(0, keepdim=True)", (1, *x.shape[1:])),
    ]
    if not x.is_complex:
        forms += [
            ("{}.amax(-1)", x.shape[:-1]),
            ("{}.logsumexp(0)", x.shape[1:]),
            ("{}.softmax(-1)", x.shape),
        ]
    form, shape = choice.one_of(forms)
    draft.define(form.format(x.name), [x], [shape])


def matmul(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: v.ndim == 2)
    if x is None:
        return
    inner, dtype, place = x.shape[1], x.dtype, x.device
    y = choice.variable(
        draft,
        lambda v: (
            v.ndim in (1, 2) and v.shape[0] == inner and (v.dtype, v.device) == (dtype, place)
        ),
    )
    if y is None:
        y = x
        draft.define(f"{x.name} @ {x.name}.mT", [x], [(x.shape[0], x.shape[0])])
        return
    draft.define(f"{x.name} @ {y.name}", [x, y], [(x.shape[0], *y.shape[1:])])


def several(draft: Draft, choice: Choice) -> None:
    """Operators with two outputs; the second are integers."""
    x = choice.variable(draft, lambda v: v.ndim > 0 and not v.is_complex)
    if x is None:
        return
    forms: list[tuple[str, Shape]] = [
        ("{}.max(0)", x.shape[1:]),
        ("{}.sort(dim=-1, stable=True)", x.shape),
        ("{}.min(-1, keepdim=True)", (*x.shape[:-1], 1)),
    ]
    form, shape = choice.one_of(forms)
    draft.define(form.format(x.name), [x], [shape, shape], dtype=[x.dtype, "int64"])


def joining(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: v.ndim > 0)
    if x is None:
        return
    shape, dtype, place = x.shape, x.dtype, x.device
    y = choice.variable(draft, lambda v: (v.shape, v.dtype, v.device) == (shape, dtype, place))
    assert y is not None
    if choice.chance(2):
        draft.define(f"lib.stack([{x.name}, {y.name}])", [x, y], [(2, *shape)], contiguous=True)
    else:
        length = (2 * shape[0], *shape[1:])
        draft.define(f"lib.cat([{x.name}, {y.name}])", [x, y], [length], contiguous=True)


def picking(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft, lambda v: v.ndim > 0)
    if x is None:
        return
    last = x.shape[0] - 1
    forms: list[tuple[str, Shape]] = [
        (f"{{}}[[0, {last}, 0]]", (3, *x.shape[1:])),
        ("{}.flip(0)", x.shape),
        ("{}.roll(1, 0)", x.shape),
        ("{}.repeat(2, *[1] * {}.ndim)", (2, *x.shape)),
    ]
    if not x.is_complex:
        forms.append(("{0}.masked_fill({0} > 0, 0.0)", x.shape))
    form, shape = choice.one_of(forms)
    draft.define(form.format(x.name, x.name), [x], [shape])


def conversion(draft: Draft, choice: Choice) -> None:
    x = choice.variable(draft)
    if x is None:
        return
    dtype = choice.one_of(("float64", "float32", "complex128"))
    if x.is_complex and not dtype.startswith("complex"):
        dtype = "complex128"
    draft.define(
        f"{x.name}.to(lib.{dtype})",
        [x],
        [x.shape],
        dtype=dtype,
        view=dtype == x.dtype,
        contiguous=x.contiguous,
    )


def transfer(devices: int) -> Callable[[Draft, Choice], None]:
    """A writer of copies from one of several devices to another."""

    def write(draft: Draft, choice: Choice) -> None:
        x = choice.variable(draft)
        if x is None:
            return
        device = choice.number(0, devices - 1)
        # Where all devices are one, `to` alone would give the tensor itself.
        (made,) = draft.define(f"{x.name}.clone().to(device({device}))", [x], [x.shape])
        made.device = device

    return write


def function(draft: Draft, choice: Choice) -> None:
    """A custom Function."""
    known = SIGNATURES if choice.fault(6) else SIGNATURES[:-3]
    name, inputs, outputs = choice.one_of(known)
    x = choice.variable(draft)
    y = partner(draft, choice, x)
    if x is None or y is None:
        return
    if name == "DirtyAndMore" and x.view:
        # PyTorch refuses, and leaves a tensor behind on which `register_hook` crashes.
        return
    operands = [x, y][:inputs]
    shape = broadcast([x.shape, y.shape]) if inputs == 2 and outputs == 1 else x.shape
    assert shape is not None
    shapes = [shape] if outputs == 1 else [x.shape, y.shape if inputs == 2 else x.shape]
    dtype = [x.dtype, y.dtype if inputs == 2 else x.dtype][:outputs]
    if inputs == 2 and outputs == 1:
        dtype = [promoted([x.dtype, y.dtype])]
    made = draft.define(
        f"{name}.apply({', '.join(v.name for v in operands)})",
        operands,
        shapes,
        dtype=dtype,
        mode=choice.mode(),
    )
    if name.startswith("Dirty") or name in ("AsIs", "ViewOf"):
        made[0].memory = x.memory
        made[0].view = x.view or name == "ViewOf"
    if name.startswith("Dirty"):
        x.needs_grad = made[0].needs_grad
    if name == "NotDifferentiable":
        made[1].needs_grad = False


WRITERS: Final = [unary, binary, reduction, unary, binary, matmul, several, joining, picking]
WRITERS.append(conversion)
WRITERS.append(new_leaf)
FUNCTIONS: Final = [function, function]
