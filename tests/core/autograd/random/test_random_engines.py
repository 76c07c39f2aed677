"""Random programs run alike on the naive engine, and in anomaly mode; PyTorch is not needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given

import plugrad
from plugrad.testing import NaiveEngine
from plugrad.testing.random_programs import Features, Program, difference, programs, run_program
from tests.core.drawing import drawn

quick = drawn(80, HealthCheck.function_scoped_fixture)
SEVERAL_PASSES = Features(writes=False, changes=False, faults=False)
ONE_PASS = Features(passes=False, faults=False)


@pytest.fixture
def restored_engine() -> Iterator[None]:
    default = plugrad.Tensor._execution_engine
    yield
    plugrad.Tensor._execution_engine = default


def assert_engines_agree(program: Program) -> None:
    default = plugrad.Tensor._execution_engine
    ours = run_program(program, plugrad)
    plugrad.Tensor._execution_engine = NaiveEngine()
    try:
        naive = run_program(program, plugrad)
    finally:
        plugrad.Tensor._execution_engine = default
    # Which of several leaves comes first is not the same.
    found = difference(ours, naive, ordered=False)
    assert found is None, found


@quick
@given(program=programs(SEVERAL_PASSES))
def test_engines_agree_on_several_passes(program: Program, restored_engine: None) -> None:
    assert_engines_agree(program)


@quick
@given(program=programs(ONE_PASS))
def test_engines_agree_on_what_was_written_to(program: Program, restored_engine: None) -> None:
    assert_engines_agree(program)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@quick
@given(program=programs())
def test_anomaly_mode_changes_nothing(program: Program) -> None:
    plain = run_program(program, plugrad)
    with plugrad.autograd.detect_anomaly(check_nan=False):
        watched = run_program(program, plugrad)
    found = difference(watched, plain)
    assert found is None, found
