"""The curves of docs/scaling.md are what tools/scaling.py draws of the measurements, and its tables
what it prints."""

from __future__ import annotations

import importlib.util
import sys
from xml.etree import ElementTree

import pytest

from tests.docs import pages

pytest.importorskip("plugrad_distributed")

SCRIPT = pages.ROOT / "tools" / "scaling.py"
SPEC = importlib.util.spec_from_file_location("scaling", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
scaling = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = scaling
SPEC.loader.exec_module(scaling)


@pytest.mark.parametrize("model", scaling.MODELS)
def test_curves_are_drawn_from_the_measurements(model: str) -> None:
    drawn = scaling.draw(model)
    ElementTree.fromstring(drawn)
    assert (scaling.FOLDER / f"scaling_{model}.svg").read_text(encoding="utf-8") == drawn


def test_tables_are_those_of_the_measurements() -> None:
    page = scaling.PAGE.read_text(encoding="utf-8")
    assert scaling.filled(page) == page
