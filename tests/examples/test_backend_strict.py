"""The backend for array-api-strict: it is short, and trains the demo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import plugrad
from tests.examples.plugins import EXAMPLES

PLUGIN = EXAMPLES / "backend_strict" / "plugrad_strict" / "plugin.py"


def test_it_is_less_than_40_lines() -> None:
    assert len(PLUGIN.read_text(encoding="utf-8").splitlines()) < 40


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_it_trains_the_demo(model: str, tmp_path: Path) -> None:
    from plugrad.cli.app import build_app

    options = ["--backend", "strict", "--model", model, "--epochs", "1", "--json"]
    result = CliRunner().invoke(build_app(), ["demo", *options, "--runs", str(tmp_path)])
    assert result.exit_code == 0, result.output
    metrics = json.loads(result.stdout)
    assert metrics["device"] == "strict"
    assert metrics["accuracy"] > 0.8


def test_the_engine_works_on_its_devices() -> None:
    x = plugrad.arange(3.0, device="strict:1", requires_grad=True)
    y = (x.to("strict:2") * 2).to("strict:0").square().sum()
    y.backward()
    assert x.grad.device == plugrad.device("strict:1")
    assert x.grad.tolist() == [0.0, 8.0, 16.0]
