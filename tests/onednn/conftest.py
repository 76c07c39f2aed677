"""plugrad-onednn is an optional part of the workspace; its library exists for Linux on x86-64.

The package need not be installed: it is taken from the sources, and registered by hand. So the
other tests use the plain kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
from tests.plugins_by_hand import registered

SOURCES = Path(__file__).resolve().parents[2] / "plugins" / "onednn"
try:
    import plugrad_onednn  # noqa: F401
except ImportError:
    sys.path.append(str(SOURCES))

library = pytest.importorskip("plugrad_onednn.library")
if library.problem():
    pytest.skip(library.problem(), allow_module_level=True)


@pytest.fixture
def onednn() -> Iterator[None]:
    """The variants, used by the cpu."""
    from plugrad_onednn import plugin

    with registered(plugin, "onednn"):
        yield


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = plugrad.get_num_threads()
    plugrad.set_num_threads(request.param)
    yield request.param
    plugrad.set_num_threads(before)


@pytest.fixture
def draw() -> Any:
    """Draws float32 arrays of a shape, the same in every test."""
    generator = np.random.default_rng(17)

    def drawn(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return generator.standard_normal(shape, np.float32)

    return drawn
