"""What every test may use, and which core the run is about."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

import pytest


def core_kind() -> str:
    """Whether the core that this interpreter imports is compiled or interpreted."""
    origin = importlib.import_module("plugrad.tensor.base").__file__
    assert origin is not None
    return "interpreted" if origin.endswith(".py") else "compiled"


def torch_version() -> str | None:
    try:
        return str(importlib.import_module("torch").__version__)
    except ImportError:
        return None


def pytest_configure(config: pytest.Config) -> None:
    wanted = os.environ.get("PLUGRAD_TEST_CORE")
    if wanted and wanted != core_kind():
        raise pytest.UsageError(f"this run wants the {wanted} core, the {core_kind()} one is here")


def pytest_report_header() -> list[str]:
    plugrad = importlib.import_module("plugrad")
    torch = torch_version()
    return [
        f"plugrad {plugrad.__version__}: {core_kind()} core",
        f"oracle: PyTorch {torch}" if torch else "oracle: PyTorch is not installed",
    ]


@pytest.fixture(scope="session")
def torch_oracle() -> ModuleType:
    """PyTorch, to compare with; tests that ask for it are skipped where it is missing."""
    torch: ModuleType = pytest.importorskip(
        "torch", reason="PyTorch is not installed: make test ORACLE=torch"
    )
    return torch
