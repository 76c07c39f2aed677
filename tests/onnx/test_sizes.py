"""Numbers that depend on dynamic sizes."""

from __future__ import annotations

import pytest

from plugrad_onnx.onnx.errors import SizeError
from plugrad_onnx.onnx.sizes import Symbols, Varying

SYMBOLS = Symbols.of({"b": 2, "n": 30})


def number(formula: str) -> Varying:
    """A number by its formula in b and n."""
    rows = [dict(zip(SYMBOLS.names, row, strict=True)) for row in SYMBOLS.rows]
    return Varying([eval(formula, {}, row) for row in rows])


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("b", {("b",): 1}),
        ("3 * n - 2", {("n",): 3, (): -2}),
        ("b * n + 2 * b - n + 7", {("b", "n"): 1, ("b",): 2, ("n",): -1, (): 7}),
    ],
)
def test_polynomials_are_found(formula: str, terms: dict[tuple[str, ...], int]) -> None:
    assert SYMBOLS.fit(number(formula)) == terms


@pytest.mark.parametrize("formula", ["n // 2", "b * b", "n // 7", "max(b, 4)", "b ** n % 11"])
def test_others_are_not(formula: str) -> None:
    assert SYMBOLS.fit(number(formula)) is None


def test_arithmetic_is_that_of_each_capture() -> None:
    b, n = number("b"), number("n")
    assert (2 * b + n * b - 1).values == number("2 * b + n * b - 1").values
    assert ((1 - n) // 3 % 5).values == number("(1 - n) // 3 % 5").values
    assert b - b == 0
    assert type(b * 0) is int


def test_decisions_are_those_of_all_captures() -> None:
    b, n = number("b"), number("n")
    assert b < n
    assert b != n
    assert b >= 1
    assert bool(b)
    with pytest.raises(SizeError, match="a decision depends on the dynamic sizes"):
        bool(b > 2)
    with pytest.raises(SizeError, match="a number is needed"):
        range(b)  # type: ignore[arg-type]  # what is tested


def test_sizes_of_tables_are_not_exceeded() -> None:
    assert max(row[1] for row in SYMBOLS.rows) == 30
    assert min(row[0] for row in SYMBOLS.rows) == 2
