"""What a strict type checker makes of programs that use plugrad as it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
pytest.importorskip("plugrad_nn")

PROGRAM = """
from typing import Any, assert_type

from numpy.typing import NDArray

import plugrad
from plugrad import Tensor, nn, optim

model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
x = plugrad.randn(4, 2)
model(x).square().mean().backward()
optimizer.step()

assert_type(x * 2 + 1, Tensor)
assert_type(x.sum(0, keepdim=True), Tensor)
assert_type(x.numpy(), NDArray[Any])
assert_type(plugrad.max(x, 0), tuple[Tensor, Tensor])
assert_type(plugrad.split(x, 2), tuple[Tensor, ...])
assert_type(nn.functional.relu(x), Tensor)


@plugrad.compile
def step(t: Tensor) -> Tensor:
    return (t * t).sum()


assert_type(step(x), Tensor)
"""
WRONG = """
import plugrad

plugrad.zeros(2).sum(keepdim="no")
plugrad.nn.Linear("two", 3)
plugrad.gremlin(2)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Away from this project, whose configuration is for its own sources; one cache for all."""
    return tmp_path_factory.mktemp("typed")


def checked(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "program.py"]
    environment = os.environ | {"MYPYPATH": os.environ.get("PYTHONPATH", "")}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_typed_program_passes(folder: Path) -> None:
    found = checked(folder, PROGRAM)
    assert found.returncode == 0, found.stdout + found.stderr


def test_wrong_arguments_and_names_are_found(folder: Path) -> None:
    lines = checked(folder, WRONG).stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines[:3]] == [f"program.py:{n}" for n in (4, 5, 6)]
