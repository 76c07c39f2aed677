"""The benchmarks of several processes run, and return what they promise. Their times are no matter
of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import plugrad.distributed as dist
from benchmarks.measure import Effort
from benchmarks.processes import wrapping
from tests.distributed.under_mpi import needs_mpi, under_mpiexec

ROOT = Path(__file__).resolve().parents[2]


def test_models_with_and_without_the_wrapper_are_timed() -> None:
    rows = wrapping.run(Effort(smoke=True))
    assert [row.case for row in rows] == list(wrapping.MODELS)
    for row in rows:
        assert set(row.samples) == {"plugrad", wrapping.BARE}
        assert all(sample.minimum > 0 for sample in row.samples.values())
        assert row.budget_figure() is not None
    assert not dist.is_initialized()


def test_the_group_ends_with_an_error_too() -> None:
    def fail() -> None:
        assert dist.get_world_size() == 1
        raise ArithmeticError

    with pytest.raises(ArithmeticError), wrapping.group_of_one():
        fail()
    assert not dist.is_initialized()


@needs_mpi
def test_sums_over_processes_are_timed() -> None:
    command = [*under_mpiexec(2), "-m", "benchmarks.processes.collectives", "--smoke"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "all_reduce" in done.stdout
