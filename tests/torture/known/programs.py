"""Random programs in which the libraries part."""

# ruff: noqa: E501  # tables

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parting:
    """Findings of the family `programs` that are none.

    Attributes:
        text: is found in the difference.
        program: is found in the program.
        when: whether it is of the kind meant, where the difference does not say enough.
    """

    text: str
    program: str = ""
    when: Callable[[Any], bool] | None = None


def _writes_gradient(parted: Any) -> bool:
    return bool(parted.raised_by("g"))


def _applied_to_result(parted: Any) -> bool:
    statement = parted.statement()
    return statement is not None and ".apply(w" in statement.text


def _without_gradient(parted: Any) -> bool:
    """Whether the results of the statement that is spoken of have no gradient."""
    variables = parted.ours()[1]
    found = [variables.get(name) for name in parted.statement().defines]
    return bool(found) and all(isinstance(value, dict) and not value["value"][1] for value in found)


def _refused_dirty(parted: Any) -> bool:
    """Whether a custom Function was refused, since it wrote to a view of a leaf."""
    statements = parted.program.statements
    return any(
        what == "raised" and "Dirty" in statements[at].text and "a view of a leaf" in str(value)
        for at, what, value in parted.ours()[0]
    )


def _raised_in_backward(parted: Any) -> bool:
    statements = parted.program.statements
    return any(
        what == "raised" and "backward(" in statements[at].text for at, what, _ in parted.ours()[0]
    )


def _both_refuse(parted: Any) -> bool:
    """Whether the statement that PyTorch refuses, since a value was overwritten, is refused."""
    return any(
        what == "raised" and "modified by an inplace operation" in str(value)
        for at, what, value in parted.ours()[0]
        if parted.program.statements[at] is parted.statement()
    )


PARTINGS: tuple[Parting, ...] = (
    # Both refuse, each at the first node that keeps what was overwritten: a hook may come before.
    Parting(r"hook \d+: (.*\n)*  but theirs: .*modified by an inplace operation", when=_both_refuse),
    # PyTorch lets some operators write to what is one in memory, but not where it is conjugated or negated.
    Parting("only theirs: .*more than one element of the written-to tensor", r"\.(mH|H|imag|adjoint|conj)\b"),
    # PyTorch's node keeps a tensor that plugrad's does not need, and so cannot run again.
    Parting("only theirs: .*backward through the graph a second time"),
    # PyTorch has no second derivative of some operators.
    Parting(r"only theirs: .*derivative for ('\w+'|aten::\w+) is not implemented"),
    # PyTorch checks overlaps in some operators, plugrad in all; PyTorch lets `out=` write to anything.
    Parting("only ours: .*(more than one element of the written-to tensor|to inference tensor outside)"),
    Parting("Could this error message be improved"),
    # A real view of complex numbers that were made part of the graph after it.
    Parting("only theirs: .*'a leaf Variable that requires grad is being used in an in-place operation"),
    Parting(r"grad: (.*\n)*  but theirs: None", r"lib\.view_as_real\((.*\n)*.*\.\w+_\("),
    # PyTorch refuses to use the view, even if no gradient depends on its history.
    Parting("only theirs: .*view and its base or another view of its base has been", when=_without_gradient),
    # PyTorch's accumulator of gradients still has the shape that a leaf had before.
    Parting("theirs: .*returned an invalid gradient at index", r"(no_grad|inference_mode)\(\): \w+\.(t|transpose|squeeze|unsqueeze)_\("),
    # PyTorch's gradient of a sign is a tensor of zeros without memory, which cannot be added to.
    Parting("only theirs: .*ZeroTensors are immutable"),
    Parting("only theirs: .*hook 'run' has changed the type of value", r"\.sgn\(\)"),
    # Dtypes that PyTorch's kernels do not mix, in the gradients of these.
    Parting("only theirs: .*addmv input tensors must have the same dtype", "lib.addr|addmv"),
    Parting("only theirs: .*expected scalar type", r"lib\.cross\("),
    # PyTorch's gradient of as_strided is a view of a buffer; so is the result of some compositions.
    Parting("only theirs: .*(A view was created in no_grad mode and is being modified|Can't detach views)", when=_writes_gradient),
    Parting("only theirs: .*(A view was created in no_grad mode and is being modified|Can't detach views)", r"\w+ = lib\.einsum"),
    # Gradients of operands that are not needed; put_ is a composite that reads the former value.
    Parting(r"node hook \d+ of \w+ inputs: ", r"lib\.(stack|cat)\(|\.put_\("),
    # What is saved: PyTorch's a view of the operand, or what it was before it was broadcast.
    Parting("only ours: .*saved tensor that has been detached in-place", r" @ |mm\("),
    Parting("only theirs: .*Inference tensors cannot be saved for backward", r"lib\.cross\(|prelu\("),
    # PyTorch's inverses are column-major.
    Parting("only theirs: .*view size is not compatible", r"lib\.linalg\.\w+\("),
    # Results of reductions along dimensions of size 1 have NumPy's layout.
    Parting("only ours: .*view size is not compatible", r"\.(movedim|permute|transpose|swapaxes|swapdims|t|mT)\b(.*\n)*.*\.(sum|mean|prod|amax|amin|max|min|var|std|logsumexp|norm)\("),
    # A cast to integers has no gradient, but checks like any other whether the view may be used.
    Parting("only ours: .*view and its base or another view of its base has been", r"\.(type|to)\(lib\.u?int|\.(long|int|short|char|byte|bool)\("),
    # What a pass accumulated before it raised.
    Parting("grad: ", r"\.backward\(", when=_raised_in_backward),
    # Numbers that are equal, or zero, except for the last bit of a product.
    Parting(r"\w+ in the end: value: \[[\d ]+\]", r"lib\.cross\((.*\n)*.*\.(arg)?sort\("),
    Parting(r"in the end: value: complex\d+ \(", r"lib\.view_as_complex\((.*\n)*.*\.real > 0\]"),
    Parting("only theirs: .*If your Function modifies inplace an input that is a view", when=_applied_to_result),
    # A custom Function that is refused has cleared the gradient before in PyTorch.
    Parting("grad: ", r"Dirty\w*\.apply", when=_refused_dirty),
    # An index is checked even without elements; PyTorch allocates memory first.
    Parting("IndexError.*is out of bounds.*\n.*setStorage"),
    # Recorded as one operator with two results, so both are treated as not constant.
    Parting("grad: False\n  but theirs: True", "prelu.*(\n.*)*create_graph=True"),
    # A number that a composition multiplies by counts as kept, as everywhere; PyTorch's C++ keeps it otherwise.
    Parting("only ours: .*backward through the graph a second time", r"\b(cumulative_trapezoid|trapezoid|gradient|affine_grid|deg2rad|rad2deg)_?\("),
    # PyTorch's hooks that are registered after it are called with those that were registered before.
    Parting(r"hook \d+ of \w+:", r"register_hook\((.*\n)*\w+\.(t|transpose|swapaxes|swapdims|squeeze|unsqueeze)_\((.*\n)*.*register_hook\("),
    # The inputs of plugrad's formulas: absolute values and angles, not their product.
    Parting("only ours: .*has been modified by an inplace operation", r"lib\.polar\("),
)  # fmt: skip


def known_parting(parted: Any) -> bool:
    return any(
        re.search(parting.text, parted.text)
        and re.search(parting.program, parted.source)
        and (parting.when is None or parting.when(parted))
        for parting in PARTINGS
    )
