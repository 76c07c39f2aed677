"""Compiled steps that communicate, which needs processes: threads would wait for one another's
capture. The oracle is the step without `plugrad.compile`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.under_mpi import needs_mpi, run

PROGRAM = Path(__file__).with_name("compiled_program.py")


@needs_mpi
def test_a_compiled_step_communicates(tmp_path: Path) -> None:
    outcome = run(PROGRAM, 2, folder=tmp_path)
    assert outcome.code == 0, outcome.err
    for rank in range(2):
        told = outcome.value(rank)
        # The first call is listened to, the others run the program.
        assert told["hits"] == 2
        for found, wanted in zip(told["found"], told["wanted"], strict=True):
            assert found == pytest.approx(wanted)
