"""Every collective between processes under mpiexec. The oracle is the same program on ranks that
are threads, which move elements by NumPy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugrad import distributed as dist
from tests.distributed.mpi.checks import CHECKS, results
from tests.distributed.under_mpi import Outcome, needs_mpi, run

pytestmark = needs_mpi

PROGRAM = Path(__file__).with_name("checks.py")


@pytest.fixture(scope="module", params=[2, 4])
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Outcome, list[Any]]:
    count: int = request.param
    outcome = run(PROGRAM, count, folder=tmp_path_factory.mktemp("mpi"))
    assert outcome.code == 0, outcome.err
    wanted = json.loads(json.dumps(dist.run_ranks(results, count)))
    return outcome, wanted


@pytest.mark.parametrize("name", CHECKS)
def test_processes_find_what_threads_find(outcomes: tuple[Outcome, list[Any]], name: str) -> None:
    outcome, wanted = outcomes
    for rank, expected in enumerate(wanted):
        assert not isinstance(expected[name], str), expected[name]
        assert outcome.value(rank)[name] == expected[name]
