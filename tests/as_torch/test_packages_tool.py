"""tools/packages_torch.py: how numbers are compared, and that its tables fit together."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from tools.packages_torch import HOME, about, digits, pins


def test_digits_are_those_of_the_largest_element() -> None:
    there = [np.array([1000.0, 1.0]), np.array(2)]
    assert digits([np.array([1000.0, 1.1]), np.array(2)], there) == pytest.approx(4.0)
    assert digits(there, there) == 16.0


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [np.zeros(3)],
        [np.zeros(2, "float32")],
        [np.array([0.0, np.nan])],
    ],
)
def test_what_is_not_comparable_is_refused(wrong: list[np.ndarray]) -> None:
    with pytest.raises(ValueError):
        digits(wrong, [np.zeros(2)])


def test_infinities_in_the_same_place_agree() -> None:
    same = [np.array([np.inf, np.nan, 1.0])]
    assert digits(same, same) == 16.0


def test_every_program_says_what_it_runs_and_has_a_pinned_package() -> None:
    table = tomllib.loads((HOME / "suites.toml").read_text())
    programs = sorted((HOME / "programs").glob("*/*.py"))
    assert len(programs) > 30
    for program in programs:
        assert about(program), program
        assert table["distributions"].get(program.stem, program.stem.replace("_", "-")) in pins()
    assert {suite["name"] for suite in table["suites"]} <= pins().keys()
    assert "torch" not in pins()
