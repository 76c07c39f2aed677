"""Random programs with tensors on several devices give the same values as on one."""

from __future__ import annotations

from hypothesis import HealthCheck, given

import plugrad
from plugrad.testing.random_programs import Features, Program, difference, programs, run_program
from tests.core.autograd.devices.toy import LateBackend, ToyBackend
from tests.core.drawing import drawn

quick = drawn(80, HealthCheck.function_scoped_fixture)
SEVERAL_PASSES = Features(writes=False, changes=False, faults=False, devices=3)
ONE_PASS = Features(passes=False, faults=False, devices=3)


def assert_devices_do_not_matter(program: Program, backend: str) -> None:
    devices = ("cpu", f"{backend}:0", f"{backend}:1")
    found = difference(
        run_program(program, plugrad, devices), run_program(program, plugrad), ordered=False
    )
    assert found is None, found


@quick
@given(program=programs(SEVERAL_PASSES))
def test_several_passes(program: Program, toy: ToyBackend) -> None:
    assert_devices_do_not_matter(program, "toy")


@quick
@given(program=programs(ONE_PASS))
def test_writes(program: Program, toy: ToyBackend) -> None:
    assert_devices_do_not_matter(program, "toy")


@quick
@given(program=programs(SEVERAL_PASSES))
def test_devices_that_work_asynchronously(program: Program, late: LateBackend) -> None:
    assert_devices_do_not_matter(program, "late")
