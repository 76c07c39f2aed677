"""Tests that take `lib` run on plugrad and, with PyTorch installed, on torch.library as oracle."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import pytest

_numbers = itertools.count()


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    """plugrad, or PyTorch."""
    if request.param == "torch":
        return pytest.importorskip("torch", reason="PyTorch is not installed")
    module = importlib.import_module("plugrad")
    importlib.import_module("plugrad.library")
    return module


@pytest.fixture
def ns() -> str:
    """A namespace that no other test uses."""
    return f"library_test_{next(_numbers)}"
