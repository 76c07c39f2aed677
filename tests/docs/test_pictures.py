"""The pictures of docs/ are what tools/pictures.py draws, and pages show all of them."""

from __future__ import annotations

import importlib.util
import sys
from xml.etree import ElementTree

import pytest

from tests.docs import pages

SCRIPT = pages.ROOT / "tools" / "pictures.py"
SPEC = importlib.util.spec_from_file_location("pictures", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
pictures = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = pictures  # dataclasses look there
SPEC.loader.exec_module(pictures)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_files_are_drawn_from_the_tables(name: str) -> None:
    drawn = pictures.render(pictures.PICTURES[name])
    ElementTree.fromstring(drawn)
    assert (pictures.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_every_picture_is_shown() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in pages.PAGES)
    for file in pictures.FOLDER.iterdir():
        assert f"](pictures/{file.name})" in shown
