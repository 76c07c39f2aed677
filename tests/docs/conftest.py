"""Pages use the backends of examples/."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.examples.plugins import example_plugins


@pytest.fixture(autouse=True, scope="session")
def examples() -> Iterator[None]:
    with example_plugins():
        yield
