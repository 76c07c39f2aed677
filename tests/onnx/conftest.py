"""plugrad-onnx needs onnx, and its tests onnxruntime, which computes what was exported."""

from __future__ import annotations

import pytest

import plugrad

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def seed() -> None:
    plugrad.manual_seed(0)
