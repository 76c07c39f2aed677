"""`torch.onnx` where plugrad is torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.as_torch.conftest import Run

onnx = pytest.importorskip("onnx")


def test_a_program_writes_a_model(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    program = f"""
import sys
import plugrad.as_torch
plugrad.as_torch.install()
import torch
from torch.onnx import OnnxExporterError
print(torch.onnx.is_in_onnx_export(), "onnx" in sys.modules)
model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Softmax(dim=1)).eval()
torch.onnx.export(model, torch.ones(1, 3), {str(path)!r}, dynamo=False, do_constant_folding=True,
                  input_names=["x"], output_names=["y"], dynamic_axes={{"x": {{0: "n"}}}})
try:
    torch.onnx.export(torch.nn.Dropout(), (torch.ones(2),))
except OnnxExporterError as error:
    print("random" in str(error))
"""
    assert run("-c", program).stdout.split() == ["False", "False", "True"]
    graph = onnx.load(path).graph
    assert [node.op_type for node in graph.node] == ["Gemm", "Softmax"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
