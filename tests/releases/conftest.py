"""The tools of a release, which are no package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(autouse=True, scope="session")
def tools() -> Iterator[None]:
    """Modules of tools/ can be imported, as by a program that runs there."""
    sys.path.insert(0, str(TOOLS))
    yield
    sys.path.remove(str(TOOLS))
