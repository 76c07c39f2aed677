"""plugrad-native is an optional part of the workspace: it needs a C compiler.

Here its plugin is registered by hand, so the other tests are about the plain kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from plugrad.plugins import get_manager
from tests.plugins_by_hand import registered

try:
    from plugrad_native import compiled

    best, missing = compiled.name, compiled.problem()
except ImportError as error:
    best, missing = "_portable", str(error)

# Without them there is nothing to test.
collect_ignore_glob = ["test_*.py"] if missing else []

# The modules that this processor can run: the best one comes first.
NAMES = [] if missing else list(compiled.NEEDS)[list(compiled.NEEDS).index(best) :]


@pytest.fixture
def native() -> Iterator[None]:
    """The variants, used by the cpu."""
    from plugrad_native import plugin

    with registered(plugin, "native"):
        yield


@pytest.fixture(params=NAMES)
def kernels(request: pytest.FixtureRequest) -> Any:
    """A module of compiled kernels."""
    return import_module(f"plugrad_native.{request.param}")


@pytest.fixture
def plain() -> Any:
    """plugrad-cpu's kernels, by operator."""
    return get_manager().backend("cpu").kernels()


@pytest.fixture(params=["float32", "float64"])
def draw(request: pytest.FixtureRequest) -> Any:
    """Draws arrays of a shape and of one dtype, the same in every test."""
    generator = np.random.default_rng(17)

    def drawn(*shape: int) -> np.ndarray[Any, Any]:
        return generator.standard_normal(shape).astype(request.param)

    return drawn
