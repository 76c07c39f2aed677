"""The examples run and reach what they promise (closed forms)."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def main_of(name: str) -> Callable[..., Any]:
    main: Callable[..., Any] = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    return main


def test_spirals_are_told_apart() -> None:
    assert main_of("spirals")() > 0.9


def test_the_rocket_lands_softly() -> None:
    height, speed, fuel = main_of("soft_landing")()
    assert abs(height) < 0.05
    assert abs(speed) < 0.05
    # Impulse: the speed must change from -1 to 0 against gravity in 8 s.
    assert fuel == pytest.approx(1 + 1 / 8, abs=0.01)


def test_ternary_weights_are_recovered() -> None:
    assert main_of("straight_through")() == [[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]]


def test_newton_finds_the_minimum() -> None:
    point, steps = main_of("newton")()
    assert point == pytest.approx([1.0, 1.0], abs=1e-8)
    assert steps < 40
