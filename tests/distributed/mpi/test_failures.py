"""A rank that fails makes the others raise, soon and with its name; no process is left behind."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.under_mpi import Outcome, needs_mpi, run, start

pytestmark = needs_mpi

PROGRAM = Path(__file__).with_name("failing_program.py")
KILLED = Path(__file__).with_name("killed_program.py")
LATE = Path(__file__).with_name("disagreeing_program.py")
WHERE = r"all_reduce\(plugrad.float32 \[4\], sum\) in group '0' "
LAUNCH = ["--grace", "8"]


def of_survivors(
    tmp_path: Path, how: str, rank: int, *, limit: str = "60", **settings: Any
) -> tuple[list[tuple[str, str, float]], Outcome]:
    """What the operations of those that did not fail ended with."""
    settings.setdefault("launch", LAUNCH)
    outcome = run(PROGRAM, 3, how, str(rank), limit, folder=tmp_path, **settings)
    found = [tuple(outcome.value(other)) for other in range(3) if other != rank]
    return found, outcome


@pytest.mark.parametrize(
    ("how", "rank", "told", "code"),
    [
        ("raise", 1, "rank 1 ended with ValueError: the data are rotten", 1),
        # A process that was forked has the connections of rank 0, until it lets them go.
        ("kill beside a worker", 0, "rank 0 ended without an exception", 137),
        pytest.param("exit", 2, "rank 2 ended without an exception", 3, marks=pytest.mark.long),
        ("end", 1, "rank 1 has ended its program", 1),
    ],
)
def test_others_raise_and_name_the_rank_that_ended(
    tmp_path: Path, how: str, rank: int, told: str, code: int
) -> None:
    found, outcome = of_survivors(tmp_path, how, rank)
    for kind, message, seconds in found:
        assert kind == "DistBackendError"
        assert re.match(WHERE + r"failed on rank \d: ", message)
        assert told in message or "ended with DistBackendError" in message
        assert seconds < 20
    assert any(told in message for _, message, _ in found)
    # A rank that leaves with a code of its own may be gone before or after the others notice.
    assert outcome.code in ({code, 4} if how == "end" else {code})


@pytest.mark.parametrize(
    ("how", "rank", "told"),
    [
        ("hang", 1, r"rank 1 is in no operation of the group, its last was barrier\(\)"),
        ("stop", 2, "rank 2 has not answered"),
        pytest.param(
            *("stop", 0, "rank 0, which passes messages on, has not answered"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_others_time_out_and_name_the_rank_that_hangs(
    tmp_path: Path, how: str, rank: int, told: str
) -> None:
    # Where others keep the processor busy, the limit of one rank passes well before another's.
    found, outcome = of_survivors(tmp_path, how, rank, limit="3", launch=["--grace", "5"])
    late = [message for kind, message, _ in found if kind == "DistTimeoutError"]
    assert late
    for message in late:
        assert re.match(WHERE + r"did not end within 3 s on rank \d: .*" + told, message)
    assert all(seconds < 12 for _, _, seconds in found)
    assert outcome.code == 1


def test_a_group_that_a_rank_does_not_make_times_out(tmp_path: Path) -> None:
    outcome = run(PROGRAM, 2, "no group", "1", "2", folder=tmp_path, launch=["--grace", "1"])
    kind, message, _ = outcome.value(0)
    assert (kind, message) == (
        "DistTimeoutError",
        "new_group([0, 1]) on rank 0 did not end within 2 s: a rank is missing",
    )


def test_ranks_that_are_late_are_asked_where_they_are(tmp_path: Path) -> None:
    outcome = run(LATE, 3, "delays", folder=tmp_path)
    for rank in (0, 2):
        found = outcome.value(rank)
        for case, told in {
            "sleep": "rank 1 is in no operation of the group, its last was none",
            "message": "rank 1 is in recv(plugrad.float32 [2], from 0)",
        }.items():
            kind, message, seconds = found[case]
            assert kind == "DistTimeoutError"
            assert f"did not end within 1.5 s on rank {rank}: {told}" in message
            assert seconds < 4.5
        assert found["again"][1].startswith("group '2' cannot be used any more: all_reduce(")


def test_debug_names_calls_that_differ(tmp_path: Path) -> None:
    variables = {"PLUGRAD_DISTRIBUTED_DEBUG": "1"}
    outcome = run(LATE, 2, "mismatches", folder=tmp_path, variables=variables)
    for case, told in {
        "shape": "all_reduce(plugrad.float32 [5], sum)",
        "dtype": "all_reduce(plugrad.float64 [4], sum)",
        "reduction": "all_reduce(plugrad.float32 [4], max)",
        "collective": "broadcast(plugrad.float32 [4], from 0)",
        "order": "barrier()",
        "sizes": "all_gather(plugrad.float32, of several sizes)",
    }.items():
        for rank in range(2):
            kind, message, _ = outcome.value(rank)[case]
            assert kind == "DistBackendError"
            assert message.endswith(
                "call different collectives: rank 0: #1 all_reduce(plugrad.float32 [4], sum); "
                f"rank 1: #1 {told}"
            )


def test_mpiexec_alone_lets_others_say_what_failed(tmp_path: Path) -> None:
    found, outcome = of_survivors(tmp_path, "raise", 1, launch=None)
    assert all("rank 1 ended with ValueError: the data are rotten" in told for _, told, _ in found)
    assert outcome.code != 0
    assert "ValueError: the data are rotten" in outcome.err


# Ranks are killed at a hundred random moments under mpiexec, by `plugrad launch`, and at nearly as
# many where forked processes have met, which takes less time.
LAUNCHED, FORKED = range(100), range(100, 192)
OFTEN, ROUNDS = 4, 23


def names_the_one_that_ended(rank: int, value: Any) -> bool:
    """Whether what a rank reported is the error that another one has ended."""
    kind, message, _ = value or ("", "", 0.0)
    named = re.search(r"rank (\d) ended", message)
    return kind == "DistBackendError" and named is not None and int(named[1]) != rank


@pytest.mark.parametrize(
    "seed",
    [*LAUNCHED[:OFTEN], *(pytest.param(s, marks=pytest.mark.long) for s in LAUNCHED[OFTEN:])],
)
def test_kills_at_random_moments_under_launch(tmp_path: Path, seed: int) -> None:
    order = random.Random(seed)
    program = start(PROGRAM, 3, "everything", str(seed), folder=tmp_path, launch=LAUNCH)
    program.wait_for_reports(60.0)
    pids = program.pids()
    victim = order.randrange(3)
    time.sleep(order.random() * 0.5)
    os.kill(pids[victim], signal.SIGKILL)
    outcome = program.end(30.0)
    assert outcome.code == 128 + signal.SIGKILL, outcome.err
    for rank in range(3):
        if rank != victim:
            assert names_the_one_that_ended(rank, outcome.value(rank)), outcome.value(rank)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.usefixtures("mpich")
@pytest.mark.skipif(sys.platform != "linux", reason="what ranks leave behind is seen on Linux only")
@pytest.mark.parametrize(
    "first",
    [
        FORKED[0],
        *(pytest.param(seed, marks=pytest.mark.long) for seed in FORKED[ROUNDS::ROUNDS]),
    ],
)
def test_kills_at_random_moments(tmp_path: Path, first: int) -> None:
    outcome = run(KILLED, 3, str(first), str(ROUNDS), folder=tmp_path, by_itself=True, limit=600.0)
    assert outcome.code == 0, outcome.err
    rounds = [json.loads(line) for line in outcome.out.splitlines()]
    assert [one["seed"] for one in rounds] == list(range(first, first + ROUNDS))
    for one in rounds:
        expected = [1, 1, 1]
        expected[one["victim"]] = -signal.SIGKILL
        assert one["codes"] == expected, one
        assert all(
            names_the_one_that_ended(rank, value)
            for rank, value in enumerate(one["values"])
            if rank != one["victim"]
        ), one
        # No process and no shared memory are left; there was some before.
        assert one["shared"], one
        assert (one["late"], one["memory"]) == ([], []), one
