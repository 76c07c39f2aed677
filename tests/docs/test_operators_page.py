"""docs/operators.md is what tools/operators_page.py writes."""

from __future__ import annotations

import pytest


def test_the_page_is_not_stale() -> None:
    for library in ("plugrad_jax", "plugrad_cuda", "cupy"):
        pytest.importorskip(library)
    from tools.operators_page import PAGE, render

    known, made = PAGE.read_text("utf-8").splitlines(), render().splitlines()
    changed = [line for line in made if line not in set(known)]
    assert not changed, "run `python tools/needs.py` and `python tools/operators_page.py`"
    assert known == made
