"""Numbers of optimizers are followed through arithmetic. Oracle: the same arithmetic on floats."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugrad.transforms.lowering.numbers import Followed, Formulas
from tests.core.drawing import drawn

NUMBERS = st.floats(0.125, 8.0)
OPERATIONS = st.sampled_from(["+", "-", "*", "/", "**"])


def computed(formulas: Formulas, value: Any, **sources: float) -> float:
    names: dict[str, Any] = dict(sources)
    exec("\n".join(formulas.lines), names)
    return float(names[value.name])


def evaluate(start: Any, program: list[tuple[str, float, bool]]) -> Any:
    value = start
    for sign, number, reflected in program:
        left, right = (number, value) if reflected else (value, number)
        value = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": lambda a, b: a / b,
            "**": lambda a, b: a**b,
        }[sign](left, right)
    return value


@drawn(100)
@given(NUMBERS, NUMBERS, st.lists(st.tuples(OPERATIONS, NUMBERS, st.booleans()), max_size=4))
def test_formulas_give_what_python_gives(
    first: float, second: float, program: list[tuple[str, float, bool]]
) -> None:
    formulas = Formulas()
    try:
        found = evaluate(formulas.source(first, "s"), program)
        wanted = evaluate(second, program)
        plain = evaluate(first, program)
    except (ZeroDivisionError, OverflowError):
        return
    if formulas.lost or isinstance(wanted, complex):
        return
    assert type(found) is Followed
    assert float.__pos__(found) == plain
    assert computed(formulas, found, s=second) == wanted


@pytest.mark.parametrize(
    "use",
    [bool, int, float, lambda n: n > 1, lambda n: n == 1, lambda n: n * float("inf")],
    ids=["bool", "int", "float", "greater", "equal", "inf"],
)
def test_what_cannot_be_followed_is_noted(use: Any) -> None:
    formulas = Formulas()
    use(formulas.source(2.5, "s"))
    assert formulas.lost


def test_the_value_of_something_computed_is_known_again() -> None:
    formulas = Formulas()
    formulas.source(0.3, "s") * 2
    assert formulas.equals(0.6, 0)
    assert not formulas.equals(0.3, 0)
    assert not formulas.equals(2.0, 0)


def test_an_operator_that_was_called_before_cannot_have_it() -> None:
    class Observer:
        inside = 0
        nodes = (object(), object())

    formulas = Formulas()
    formulas.listen_with(Observer())
    formulas.source(0.3, "s") * 2
    assert not formulas.equals(0.6, 1)
    assert formulas.equals(0.6, 2)
