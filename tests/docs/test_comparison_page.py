"""Quotations from docs/performance.md in docs/comparison.md are up to date."""

from __future__ import annotations

import pytest

from tools.comparison_page import PAGE, PERFORMANCE, benchmarks, compiled, quoted, slower

SMALL = """\
# Performance

## In short

PyTorch has 3 of these rows, too. plugrad needs less in 1 of them, the same within five percent \
in 1, and more in 1. Each dot is a row.

**Slower than PyTorch**, and how many times: exp, 1e6 elements 1.3.

## large_arrays

| case | unit | to PyTorch |
| --- | --- | ---: |
| exp, 1e6 elements | us per call | 1.31 (1.2) |

## captured_steps

| case | to plugrad, eager | to plugrad by XLA | to PyTorch | to JAX by hand |
| --- | ---: | ---: | ---: | ---: |
| on the processor, MLP | 0.6 (0.5) |  | 0.3 (0.2) |  |
| MLP of 256 | 0.3 (0.2) |  |  | 1.1 (1.2) |
"""


def test_the_page_is_not_stale() -> None:
    page = PAGE.read_text(encoding="utf-8")
    made = quoted(PERFORMANCE.read_text(encoding="utf-8"), page)
    assert made == page, "run `python -m tools.comparison_page`"


def test_rows_are_found_by_benchmark() -> None:
    assert list(benchmarks(SMALL)) == ["large_arrays", "captured_steps"]
    (row,) = benchmarks(SMALL)["large_arrays"]
    assert row["to PyTorch"] == "1.31 (1.2)"


def test_steps_are_compared_by_their_medians() -> None:
    text = compiled(SMALL)
    assert "| MLP | 0.3 | 0.6 | not measured |" in text
    assert text.endswith("`jax.jit`: MLP of 256: 1.1.")


def test_slower_cases_are_listed_with_their_benchmark() -> None:
    text = slower(SMALL)
    assert text.startswith("Of 3 cases on two CPU cores, plugrad takes less time than PyTorch in 1")
    assert text.endswith("| exp, 1e6 elements | large_arrays | 1.3 |")


def test_a_page_without_counts_is_refused() -> None:
    with pytest.raises(SystemExit, match="does not say which cases are slower"):
        slower("# Performance\n")
