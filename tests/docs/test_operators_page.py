"""docs/operators.md and docs/variants.md are what tools/ writes."""

from __future__ import annotations

import importlib
import sys

import pytest

from plugrad.plugins import get_manager


def test_the_page_is_not_stale() -> None:
    for library in ("plugrad_jax", "plugrad_cuda", "cupy"):
        pytest.importorskip(library)
    from tools.operators_page import PAGE, render

    known, made = PAGE.read_text("utf-8").splitlines(), render().splitlines()
    changed = [line for line in made if line not in set(known)]
    assert not changed, "run `python tools/needs.py` and `python tools/operators_page.py`"
    assert known == made


def test_the_page_of_variants_is_not_stale() -> None:
    from tools.variants_page import PAGE, render

    assert PAGE.read_text("utf-8") == render(), "run `python tools/variants_page.py`"


def test_the_page_of_variants_is_the_same_on_every_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in [name for name in sys.modules if name.startswith("plugrad_native")]:
        monkeypatch.delitem(sys.modules, module)
    cpu = type(get_manager().backend("cpu"))
    monkeypatch.setattr(cpu, "features", lambda self, capability: {})
    from tools.variants_page import PAGE, render

    assert PAGE.read_text("utf-8") == render()
    assert importlib.import_module("plugrad_native.compiled").name == "_portable"
    for module in [name for name in sys.modules if name.startswith("plugrad_native")]:
        monkeypatch.delitem(sys.modules, module)
