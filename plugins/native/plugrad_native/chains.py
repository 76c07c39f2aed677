"""Joined elementwise functions, which compiled steps compute block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from plugrad.plugins import Link, Operand
from plugrad_native import compiled

# Kernels that can be links of a chain. The names of some links contain the kernel's arguments.
LINKS: Final = frozenset(
    (
        *("neg", "abs", "sqrt", "reciprocal", "rsqrt", "relu", "exp", "log", "sigmoid", "tanh"),
        *("erf", "silu", "gelu", "pow", "add", "sub", "mul", "div", "maximum", "minimum"),
        *("tanh_backward", "sigmoid_backward", "silu_backward", "gelu_backward"),
    )
)
_POWERS: Final[dict[Any, str]] = {2: "square", 3: "cube", 0.5: "sqrt", -1: "reciprocal"}
_GELUS: Final = {"none": "", "tanh": "_tanh"}
_MOST_REGISTERS: Final = 8

_names: dict[Any, str] = {}


def join(links: list[Link]) -> Callable[..., Any] | None:
    """A function that maps the inputs of some calls to the result of the last one; None if they
    cannot be joined."""
    if not _names:
        _names.update({compiled.kernel(name): name for name in LINKS})
    last_read: dict[int, int] = {}
    inputs = 0
    for place, link in enumerate(links):
        for value in link.arguments:
            if isinstance(value, Operand) and value.of_link:
                last_read[value.number] = place
            elif isinstance(value, Operand):
                inputs = max(inputs, value.number + 1)
    free = list(range(_MOST_REGISTERS))
    registers: list[int] = []
    program: list[tuple[str, tuple[Any, ...], int]] = []
    for place, link in enumerate(links):
        found = _operation(_names.get(link.kernel, ""), link.arguments)
        if found is None or not free:
            return None
        name, arguments = found
        registers.append(free.pop())
        sources = tuple([_source(value, registers) for value in arguments])
        program.append((name, sources, registers[place]))
        free += [registers[each] for each, at in last_read.items() if at == place]
    chain = compiled.kernel("make_chain")(inputs, tuple(program))
    return None if chain is NotImplemented else partial(compiled.kernel("run_chain"), chain)


def _operation(name: str, arguments: Sequence[Any]) -> tuple[str, Sequence[Any]] | None:
    """The name of a link, and its operands."""
    if name == "pow":
        base, exponent = arguments
        known = type(exponent) in (int, float)
        power = _POWERS.get(exponent) if known else None
        return None if power is None else (power, (base,))
    if name in ("gelu", "gelu_backward"):
        kind = _GELUS.get(arguments[-1])
        if kind is None:
            return None
        return name.replace("gelu", "gelu" + kind, 1), arguments[:-1]
    return (name, arguments) if name else None


def _source(value: Any, registers: Sequence[int]) -> Any:
    if not isinstance(value, Operand):
        return value
    return ("register", registers[value.number]) if value.of_link else ("input", value.number)
