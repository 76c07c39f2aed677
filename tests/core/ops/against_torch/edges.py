"""What tests at the edges share: programs run in plugrad and in PyTorch, and what they return."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import plugrad
from tests.core.ops.against_torch.oracle import dtype_name, is_tensor, to_numpy

Program = Callable[[Any], Any]

INF, NAN = float("inf"), float("nan")
EDGES: Final = [NAN, -INF, INF, -4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 4.0]


def outcome(library: Any, program: Callable[[Any], Any]) -> Any:
    """What a program returns, in values that compare; for an error its type and words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(program(library))
        except Exception as error:
            words = str(error).partition("\n")[0].replace("torch.", "").replace("plugrad.", "")
            return type(error).__name__, words


def described(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return [described(item) for item in value]
    if is_tensor(value):
        values = to_numpy(value).round(3) + 0
        shown = [f"{x:.3g}" for x in values.reshape(-1).tolist()]
        return dtype_name(value), value.requires_grad, values.shape, shown
    return value


def gradients(function: Callable[..., Any], *inputs: Any) -> Any:
    """What a function gives, and the gradients of its sum."""
    leaves = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    result = function(*inputs)
    result.sum().backward()
    return result, [leaf.grad for leaf in leaves]


def check(torch: Any, program: Program) -> None:
    """A program returns, or raises, the same in both libraries."""
    assert outcome(plugrad, program) == outcome(torch, program)
