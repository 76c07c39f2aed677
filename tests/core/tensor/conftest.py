"""Programs that are run on immutable arrays and on the CPU, where memory is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.core.frozen import immutable_backends, immutable_device


@pytest.fixture(params=immutable_backends())
def immutable(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device with immutable arrays."""
    with immutable_device(request.param):
        yield request.param


@pytest.fixture
def on_both(immutable: str) -> Callable[[Callable[[str], Any]], tuple[Any, Any]]:
    """Runs a program of a device there, and on the CPU, which is the oracle."""
    return lambda program: (program(immutable), program("cpu"))
