"""The design pages name files that exist, and each package of the core has its place in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import pages

CORE = pages.ROOT / "core" / "plugrad"
DESIGN = pages.ROOT / "docs" / "design.md"
CHAPTERS = sorted(CORE.glob("*/DESIGN.md"))
# Folders and files in the text, such as `tensor/calls/` and `dispatch/scope.py`.
FILE = re.compile(r"`((?:[\w<>*]+/)+(?:[\w.<>*]+\.(?:py|yaml|json|c))?|\w+\.(?:py|yaml|json))`")


def is_there(name: str, page: Path) -> bool:
    pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
    places = [pages.ROOT, CORE, page.parent, *pages.ROOT.glob("backends/*")]
    # A row of a table may leave out the folder that it is about.
    found = [path for place in places for path in place.glob(pattern)]
    return bool(found or [*CORE.rglob(pattern)])


@pytest.mark.parametrize("page", [DESIGN, *CHAPTERS], ids=lambda page: page.parent.name)
def test_files_that_are_named_exist(page: Path) -> None:
    named = sorted(set(FILE.findall(page.read_text(encoding="utf-8"))))
    assert named
    assert [name for name in named if not is_there(name, page)] == []


def test_the_page_names_every_package() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    packages = [path.parent.name for path in CORE.glob("*/__init__.py")]
    assert [name for name in packages if f"`{name}/`" not in text] == []


def test_the_page_leads_to_every_chapter() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    missing = [
        path for path in CHAPTERS if f"(../core/plugrad/{path.parent.name}/DESIGN.md)" not in text
    ]
    assert missing == []
