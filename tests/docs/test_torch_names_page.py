"""docs/torch_names.md is what tools/torch_names_page.py writes."""

from __future__ import annotations

import pytest


def test_the_page_is_not_stale() -> None:
    for library in ("plugrad_as_torch", "plugrad_cuda"):
        pytest.importorskip(library)
    from tools.torch_names_page import PAGE, render

    assert PAGE.read_text("utf-8") == render(), "run `python tools/torch_names_page.py`"
