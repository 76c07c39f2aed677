"""Rounds of three ranks, one of which is killed at a random moment: `killed_program.py FIRST COUNT`
has the seeds FIRST, FIRST + 1, ... and prints a line of JSON for each.

The ranks are forked from this process, which has imported plugrad and never starts MPI, so a round
takes about a second. They meet by a file.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import plugrad
from plugrad import distributed as dist
from tests.distributed.mpi.failing_program import attempt, everything
from tests.distributed.under_mpi import RESULTS

RANKS = 3
# Seconds in which the ranks come, and in which all processes end once one was killed.
START, END = 60.0, 30.0
_PR_SET_CHILD_SUBREAPER = 36


def be_rank(rank: int, seed: int, folder: Path) -> None:
    """What a rank does until it is killed, or an operation fails."""
    os.environ.update({RESULTS: str(folder), "RANK": str(rank)})
    with (folder / f"err-{rank}").open("wb") as err:
        os.dup2(err.fileno(), sys.stderr.fileno())
    dist.init_process_group(
        "mpi", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=RANKS, timeout=60
    )

    def act() -> None:
        try:
            everything(seed)
        finally:
            (folder / f"memory-{rank}").write_text("\n".join(shared_memory()))

    attempt(act)


def shared_memory() -> list[str]:
    """Names of the memory that this process shares with others, taken away or not."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if "/dev/shm/" in line}
    return [path.removesuffix(" (deleted)") for path in sorted(paths)]


def adopt() -> None:
    """Become the parent of what ranks leave behind, such as the server where they meet (Linux)."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("prctl failed: what ranks leave behind cannot be seen")


def wait_for_reports(folder: Path) -> None:
    """Wait until all ranks have reported something, or one has ended before."""
    end = time.monotonic() + START
    while len(list(folder.glob("rank-*.json"))) < RANKS and time.monotonic() < end:
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.005)


def wait_for_ends() -> tuple[dict[int, int], list[str]]:
    """Wait until no process is left: exit codes by process, and command lines of those that are
    late, which are killed."""
    codes: dict[int, int] = {}
    late: list[str] = []
    end = time.monotonic() + END
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return codes, late
        if pid:
            codes[pid] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() < end:
            time.sleep(0.005)
        else:
            end += 1.0
            for child in Path("/proc/self/task", str(os.getpid()), "children").read_text().split():
                words = Path("/proc", child, "cmdline").read_bytes().split(b"\0")
                late.append(f"{child}: {b' '.join(words).decode(errors='replace')}")
                os.kill(int(child), signal.SIGKILL)


def kill_one(pids: list[int], seed: int) -> int:
    """Kill one of the ranks at a random moment; which."""
    order = random.Random(seed)
    victim = order.randrange(RANKS)
    time.sleep(order.random() * 0.5)
    os.kill(pids[victim], signal.SIGKILL)
    return victim


def outcome(seed: int, folder: Path, pids: list[int]) -> dict[str, Any]:
    """Kill a rank, and what the others and this machine say of that afterwards."""
    wait_for_reports(folder)
    victim = kill_one(pids, seed)
    codes, late = wait_for_ends()
    reported = [folder / f"rank-{rank}.json" for rank in range(RANKS)]
    names = {name for path in folder.glob("memory-*") for name in path.read_text().splitlines()}
    return {
        "seed": seed,
        "victim": victim,
        "values": [p.exists() and json.loads(p.read_text())["value"] for p in reported],
        "codes": [codes[pid] for pid in pids],
        "late": late,
        "memory": sorted(name for name in names if Path(name).exists()),
        "shared": len(names),
    }


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    adopt()
    # The modules that a rank would import at its first steps, except MPI.
    assert dist.is_mpi_available()
    plugrad.ones(1)
    for seed in range(first, first + count):
        folder = Path(os.environ[RESULTS], str(seed))
        folder.mkdir()
        pids = []
        for rank in range(RANKS):
            pid = os.fork()
            if pid == 0:
                be_rank(rank, seed, folder)
                return
            pids.append(pid)
        print(json.dumps(outcome(seed, folder, pids)), flush=True)


if __name__ == "__main__":
    main()
