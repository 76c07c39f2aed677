"""The runner against families that crash, hang, use up memory, and find faults."""

from __future__ import annotations

import pytest

from tests.torture.families import all_families
from tests.torture.runner import Runner

SEED = 7
CASES = 20


@pytest.fixture(scope="module")
def runner() -> Runner:
    made = Runner(all_families("tests.torture.broken"), SEED, 2, preloaded=())
    made.run(1.0, CASES)
    return made


def test_every_case_is_run_whatever_happens_to_the_others(runner: Runner) -> None:
    assert {tally.family.name: tally.cases for tally in runner.tallies} == dict.fromkeys(
        ("crash", "hang", "memory", "wrong"), CASES
    )


def test_what_ends_the_process_is_shown_once_with_its_program(runner: Runner) -> None:
    (group,) = [group for group in runner.groups.values() if group.family.name == "crash"]
    assert "a case ends the process: SIGSEGV" in group.finding.summary
    assert group.finding.program == f"crash({SEED * 10**9 + 3})"
    assert sum(runner.tallies[0].groups.values()) == 2


def test_what_does_not_end_is_shown_with_its_stack(runner: Runner) -> None:
    (group,) = [group for group in runner.groups.values() if group.family.name == "hang"]
    assert "does not end" in group.finding.summary
    assert "run_case" in group.finding.summary
    assert f"run_case({SEED * 10**9 + 4})" in group.finding.program


def test_memory_without_end_is_a_finding(runner: Runner) -> None:
    (group,) = [group for group in runner.groups.values() if group.family.name == "memory"]
    assert "MemoryError" in group.finding.summary


def test_findings_that_differ_in_numbers_only_are_one(runner: Runner) -> None:
    (group,) = [group for group in runner.groups.values() if group.family.name == "wrong"]
    assert group.finding.key == "number # is odd"
    tally = runner.tallies[3]
    assert tally.groups["number # is odd"] == CASES // 2
    assert tally.counts["looks"] == 3 * CASES
