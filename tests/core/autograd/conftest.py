"""Fixtures of the tests that are run on plugrad and on PyTorch alike."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> ModuleType:
    """plugrad; and PyTorch where it is installed, which keeps what the test expects true."""
    if request.param == "torch":
        oracle: ModuleType = request.getfixturevalue("torch_oracle")
        return oracle
    return importlib.import_module(request.param)
