"""Data parallel training between processes under mpiexec. The oracle is the same program on ranks
that are threads; their own tests compare with one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plugrad import distributed as dist
from tests.distributed.data_parallel.program import results
from tests.distributed.under_mpi import needs_mpi, run

PROGRAM = Path(__file__).with_name("program.py")
# What is rounded to few digits may be rounded otherwise where sums are taken in another order.
TOLERANCES = {"bfloat16": 1e-2, "power": 1e-6}


@needs_mpi
@pytest.mark.parametrize("count", [2, 4])
def test_processes_train_as_threads_do(count: int, tmp_path: Path) -> None:
    outcome = run(PROGRAM, count, folder=tmp_path)
    assert outcome.code == 0, outcome.err
    for rank, expected in enumerate(dist.run_ranks(results, count)):
        found = outcome.value(rank)
        assert found.keys() == expected.keys()
        for name, arrays in expected.items():
            for mine, wanted in zip(found[name], arrays, strict=True):
                tolerance = TOLERANCES.get(name, 1e-11)
                np.testing.assert_allclose(mine, wanted, tolerance, tolerance, err_msg=name)
