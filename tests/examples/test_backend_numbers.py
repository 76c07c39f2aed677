"""The backend on Python lists: every operator, and the tutorial that writes it."""

from __future__ import annotations

import ast

import pytest

import plugrad
from plugrad.testing.cases import OpCase
from tests.core.backends.against_cpu import CASES, check_case
from tests.docs import pages
from tests.examples.plugins import EXAMPLES

PLUGIN = EXAMPLES / "backend_numbers" / "plugrad_numbers" / "plugin.py"
PAGE = pages.ROOT / "docs" / "write_a_backend_in_100_lines.md"


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_the_blocks_of_the_tutorial_are_the_plugin() -> None:
    blocks = [block.code for block in pages.blocks_of(PAGE) if block.kind == "python"]
    assert lines_of("\n".join(blocks)) == lines_of(PLUGIN.read_text(encoding="utf-8"))


def test_it_is_about_a_hundred_lines() -> None:
    text = PLUGIN.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    prose = sum(
        node.body[0].end_lineno - node.body[0].lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node)
    )
    comments = sum(line.strip().startswith("#") for line in text.splitlines())
    assert len(lines_of(text)) - prose - comments < 150


def test_kernels_use_no_array_library() -> None:
    used = [line for line in PLUGIN.read_text(encoding="utf-8").splitlines() if "np." in line]
    assert used == [
        "        return np.array(array.elements, array.dtype.numpy).reshape(array.shape)"
    ]


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_operators_give_what_the_cpu_gives(case: OpCase, dtype: str) -> None:
    if dtype == "float64" or dtype in case.dtypes:
        check_case(case, dtype, "numbers")


def test_a_write_to_a_view_reaches_the_base() -> None:
    x = plugrad.zeros(2, 3, device="numbers")
    x.t()[1] += 1
    assert x.tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
