"""`plugrad demo`: it learns, leaves its files, repeats itself and explains a wrong backend."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import plugrad

PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments: str) -> Any:
    from plugrad.cli.app import build_app

    return CliRunner().invoke(build_app(), ["demo", *arguments])


def quick(runs: Path, *arguments: str) -> Any:
    return run("--model", "mlp", "--epochs", "2", "--runs", str(runs), *arguments)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A short run and its folder."""
    runs = tmp_path_factory.mktemp("runs")
    result = quick(runs, "--name", "first", "--seed", "3")
    assert result.exit_code == 0, result.output
    return runs / "first", result


def test_it_leaves_its_files(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    assert sorted(path.name for path in folder.iterdir()) == [
        "curves.png",
        "metrics.json",
        "misclassified.png",
        "model.safetensors",
    ]
    for picture in ("curves.png", "misclassified.png"):
        assert (folder / picture).read_bytes().startswith(PNG)


def test_it_says_where_the_backend_came_from_and_how_to_choose(
    finished: tuple[Path, Any],
) -> None:
    _, result = finished
    assert "Device 'cpu'" in result.output
    assert "PLUGRAD_BACKEND" in result.output
    assert "held-out digits are right" in result.output


def test_the_saved_model_reproduces_the_reported_accuracy(finished: tuple[Path, Any]) -> None:
    from plugrad_nn.demo import digits, models, training

    folder, _ = finished
    metrics = json.loads((folder / "metrics.json").read_text())
    model = models.mlp()
    model.load_state_dict(plugrad.load(folder / "model.safetensors"))
    _, held_out = digits.load(seed=3)
    assert training.evaluate(model, held_out).accuracy == pytest.approx(
        metrics["accuracy"], abs=1e-6
    )
    assert len(metrics["mistakes"]) == round((1 - metrics["accuracy"]) * metrics["held_out"])


def test_the_same_seed_gives_the_same_run(finished: tuple[Path, Any], tmp_path: Path) -> None:
    folder, _ = finished
    quick(tmp_path, "--seed", "3")
    again = json.loads((tmp_path / "digits-mlp" / "metrics.json").read_text())
    before = json.loads((folder / "metrics.json").read_text())
    for key in ("accuracy", "final_loss", "accuracy_by_epoch", "mistakes"):
        assert again[key] == before[key]


def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    result = quick(tmp_path, "--json", "--backend", "cpu")
    metrics = json.loads(result.stdout)
    assert metrics["device"] == "cpu"
    assert metrics["device_source"] == "the option --backend cpu"
    assert metrics["steps"] == 2 * -(-(1797 - metrics["held_out"]) // 32)


def test_an_unknown_backend_is_explained_with_exit_code_2(tmp_path: Path) -> None:
    result = quick(tmp_path, "--backend", "nope")
    assert result.exit_code == 2
    assert "No backend named 'nope' is installed" in result.output
    assert "pip install plugrad-nope" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_it_reaches_97_percent_in_time(tmp_path: Path) -> None:
    result = run("--runs", str(tmp_path), "--json")
    metrics = json.loads(result.stdout)
    assert metrics["accuracy"] >= 0.97
    assert metrics["seconds"] < 60


def test_several_processes_share_each_batch(tmp_path: Path) -> None:
    """Oracle: the same run on one process: the steps are as many, and it learns."""
    pytest.importorskip("plugrad_distributed")
    pytest.importorskip("mpi4py")
    runs = str(tmp_path)
    command = [sys.executable, "-m", "plugrad.cli", "demo", "--processes", "2", "--runs", runs]
    options = ["--model", "mlp", "--epochs", "2", "--seed", "3"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # One process speaks for both.
    assert done.stdout.count("held-out digits are right") == 1
    assert "on 2 processes" in done.stdout
    metrics = json.loads((tmp_path / "digits-mlp" / "metrics.json").read_text())
    assert metrics["processes"] == 2
    assert metrics["steps"] == 2 * math.ceil(1438 / 32)
    assert metrics["accuracy"] > 0.8
    assert (tmp_path / "digits-mlp" / "model.safetensors").exists()


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("plugrad_distributed")
    result = quick(tmp_path, "--processes", "2", "--batch-size", "31")
    assert result.exit_code == 2
    assert "--batch-size must be a multiple of the 2 processes" in result.output
    assert list(tmp_path.iterdir()) == []


def test_several_processes_need_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plugrad_nn.demo import processes

    monkeypatch.setattr(processes, "is_installed", lambda: False)
    result = quick(tmp_path, "--processes", "2")
    assert result.exit_code == 2
    assert "pip install 'plugrad-distributed[mpi]'" in result.output
