"""`plugrad demo`: it trains, writes its files, is repeatable and explains a wrong backend."""

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


def test_a_program_that_does_not_exist_is_told_plainly() -> None:
    result = run("foo")
    assert result.exit_code == 2
    assert "': 'foo' is not one of 'digits', 'text'." in result.stderr


def test_it_leaves_its_files(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoint.safetensors",
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
    from plugrad_nn.demo import digits, models

    folder, _ = finished
    metrics = json.loads((folder / "metrics.json").read_text())
    model = models.mlp()
    model.load_state_dict(plugrad.load(folder / "model.safetensors"))
    _, held_out = digits.load(seed=3)
    assert digits.evaluate(model, held_out).accuracy == pytest.approx(metrics["accuracy"], abs=1e-6)
    assert len(metrics["mistakes"]) == round((1 - metrics["accuracy"]) * metrics["held_out"])


def test_the_same_seed_gives_the_same_run(finished: tuple[Path, Any], tmp_path: Path) -> None:
    folder, _ = finished
    quick(tmp_path, "--seed", "3")
    again = json.loads((tmp_path / "digits-mlp-1" / "metrics.json").read_text())
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
    told = " ".join(result.output.split())  # however it is wrapped
    assert "No backend named 'nope' is installed" in told
    assert "pip install plugrad-nope" in told
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_gets_a_line_for_each_epoch(finished: tuple[Path, Any]) -> None:
    _, result = finished
    lines = [line for line in result.output.splitlines() if line.startswith("epoch ")]
    assert [line.split()[1] for line in lines] == ["1/2", "2/2"]
    assert all("accuracy" in line for line in lines)


def test_it_ends_with_what_to_open_and_what_to_try_next(finished: tuple[Path, Any]) -> None:
    folder, result = finished
    ending = result.output[result.output.index("Open:") :]
    assert str(folder / "misclassified.png") in ending
    assert "plugrad demo text" in ending
    assert "cuda" not in ending


def test_runs_are_numbered_and_none_is_overwritten(tmp_path: Path) -> None:
    for _ in range(2):
        assert quick(tmp_path, "--epochs", "1").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits-mlp-1", "digits-mlp-2"]


def test_a_name_that_is_there_is_refused(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    before = (folder / "metrics.json").read_bytes()
    result = quick(folder.parent, "--name", "first")
    assert result.exit_code == 2
    assert "choose another --name, or continue with --resume" in result.output
    assert (folder / "metrics.json").read_bytes() == before


def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the same run without an interruption."""
    from plugrad_nn.demo.watching import Lines

    quick(tmp_path, "--epochs", "3", "--name", "whole")

    def stop(self: Lines, epoch: int, curves: Any, done: bool) -> None:
        if epoch == 2 and not done:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Lines, "__call__", stop)
        stopped = quick(tmp_path, "--epochs", "3")
    assert stopped.exit_code == 130
    assert "--resume goes on" in stopped.output
    resumed = quick_resume(tmp_path)
    assert "Going on after epoch 1" in resumed.output
    whole = json.loads((tmp_path / "whole" / "metrics.json").read_text())
    both = json.loads((tmp_path / "digits-mlp-1" / "metrics.json").read_text())
    for key in ("final_loss", "accuracy_by_epoch", "steps"):
        assert both[key] == whole[key]


def quick_resume(runs: Path, *arguments: str) -> Any:
    return run("--model", "mlp", "--runs", str(runs), "--resume", *arguments)


def test_a_finished_run_goes_on_for_more_epochs_only(tmp_path: Path) -> None:
    quick(tmp_path)
    done = quick_resume(tmp_path)
    assert done.exit_code == 2
    assert "is finished, with 2 epochs: --epochs 4 goes on" in done.output
    assert quick_resume(tmp_path, "--epochs", "3").exit_code == 0
    metrics = json.loads((tmp_path / "digits-mlp-1" / "metrics.json").read_text())
    assert len(metrics["accuracy_by_epoch"]) == 3


def test_a_run_that_was_stopped_before_its_report_reports_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    quick(tmp_path)
    metrics = tmp_path / "digits-mlp-1" / "metrics.json"
    before = json.loads(metrics.read_text())
    metrics.unlink()
    assert quick_resume(tmp_path).exit_code == 0
    assert json.loads(metrics.read_text())["accuracy_by_epoch"] == before["accuracy_by_epoch"]


def test_without_a_run_there_is_nothing_to_resume(tmp_path: Path) -> None:
    result = quick_resume(tmp_path)
    assert result.exit_code == 2
    assert "there is no run to resume" in result.output


def test_backends_are_compared_in_a_table(tmp_path: Path) -> None:
    """On one backend twice, which has the same figures."""
    result = quick(tmp_path, "--compare", "cpu,cpu")
    assert result.exit_code == 0, result.output
    head, *rows = result.output.splitlines()[-3:]
    assert head.split()[:3] == ["device", "accuracy", "seconds"]
    first, second = (row.split() for row in rows)
    assert first[:2] == second[:2]
    assert first[-1].endswith("digits-mlp-1")


def test_all_backends_to_compare_must_be_there(tmp_path: Path) -> None:
    result = quick(tmp_path, "--compare", "cpu,nope")
    assert result.exit_code == 2
    assert "No backend named 'nope'" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--compare", "cpu", "--backend", "cpu"], "--compare cannot be combined with --backend"),
        (["--compare", "cpu,"], "--compare takes names with commas between, got 'cpu,'"),
        (["text"], "--model is for digits; text has one model"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, arguments: list[str], problem: str
) -> None:
    result = quick(tmp_path, *arguments)
    assert result.exit_code == 2
    assert problem in result.output


def test_recording_needs_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugrad_nn.demo.advice.has_viewer", lambda: False)
    result = quick(tmp_path, "--record")
    assert result.exit_code == 2
    assert "--record needs plugrad-viewer: pip install plugrad-viewer" in result.output


def test_a_step_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("plugrad_viewer", reason="plugrad-viewer is not installed")
    result = quick(tmp_path, "--epochs", "1", "--record")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "digits-mlp-1" / "replay.html").read_text()
    assert "<!doctype html>" in text
    assert "replay.html" in result.output


def test_text_is_learnt_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Oracle: an untrained model needs log2(97) bits for a character."""
    from plugrad_nn.demo import text

    monkeypatch.setattr(text, "CHARACTERS", 60_000)
    monkeypatch.setattr(text, "STEPS", 12)
    monkeypatch.setattr("plugrad_nn.demo.outcome.WRITTEN_CHARACTERS", 20)
    result = run("text", "--epochs", "2", "--runs", str(tmp_path), "--batch-size", "8")
    assert result.exit_code == 0, result.output
    metrics = json.loads((tmp_path / "text-1" / "metrics.json").read_text())
    first, last = metrics["bits_by_epoch"]
    assert last < first < math.log2(97)
    written = (tmp_path / "text-1" / "written.txt").read_text()
    assert written.startswith("def ")
    assert set(written) <= set(text.ALPHABET)


def test_zlib_is_told_what_came_before() -> None:
    from plugrad_nn.demo.text import bits_of_zlib

    text = "import os\nimport sys\n" * 20
    assert bits_of_zlib(text, text) < 0.5 * bits_of_zlib("", text)


@pytest.mark.slow
def test_it_reaches_97_percent_in_time(tmp_path: Path) -> None:
    result = run("--runs", str(tmp_path), "--json")
    metrics = json.loads(result.stdout)
    assert metrics["accuracy"] >= 0.97
    assert metrics["seconds"] < 60


def test_several_processes_share_each_batch(tmp_path: Path) -> None:
    """Oracle: the same run on one process: it takes as many steps, and the loss decreases."""
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
    metrics = json.loads((tmp_path / "digits-mlp-1" / "metrics.json").read_text())
    assert metrics["processes"] == 2
    assert metrics["steps"] == 2 * math.ceil(1438 / 32)
    assert metrics["accuracy"] > 0.8
    assert (tmp_path / "digits-mlp-1" / "model.safetensors").exists()


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


def test_help_names_the_defaults_that_are_used() -> None:
    from plugrad_nn.demo.defaults import BATCH_SIZES, EPOCHS

    told = " ".join(run("--help").output.split())
    for values in (EPOCHS, BATCH_SIZES):
        assert f"[default: {values['digits']}, for text {values['text']}" in told
