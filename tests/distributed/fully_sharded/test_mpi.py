"""fully_shard between processes under mpiexec."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.distributed.fully_sharded.program import train
from tests.distributed.under_mpi import needs_mpi, run

pytestmark = needs_mpi

PROGRAM = Path(__file__).with_name("program.py")


def test_two_processes_train_a_transformer_as_one_does(tmp_path: Path) -> None:
    outcome = run(PROGRAM, 2, folder=tmp_path)
    assert outcome.code == 0, outcome.err
    losses, sums = train(1, 0)
    for rank in range(2):
        found = outcome.value(rank)
        np.testing.assert_allclose(found[0], losses, rtol=1e-10)
        np.testing.assert_allclose(found[1], sums, rtol=1e-8, atol=1e-10)
