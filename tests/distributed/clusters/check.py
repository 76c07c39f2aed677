"""Checks an MPI library or a cluster: `check.py [OPTIONS OF plugrad launch]`.

It runs `program.py` on four ranks, then again with one rank that is killed. Without options, it
also runs it by mpiexec alone. The working directory must be one that all machines see.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from plugrad_distributed.launching.starter import find_starter

PROGRAM = Path(__file__).with_name("program.py")
RANKS, VICTIM = 4, 1
KILLED = 137
LIMIT = 120.0


def run(*command: str) -> tuple[int, str]:
    """The exit code of a command, and all that it wrote."""
    print("$", *command, flush=True)
    found = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    return found.returncode, found.stdout


def problems(options: Sequence[str], folder: str) -> list[str]:
    """What did not go as it should."""
    launch = [sys.executable, "-m", "plugrad.cli", "launch", "-n", str(RANKS), "--grace", "8"]
    program = [str(PROGRAM), folder]
    runs = {"plugrad launch": (RANKS, [*launch, *options, *program])}
    if not options:
        runs["mpiexec"] = (2, [find_starter().path, "-n", "2", sys.executable, *program])
    found = []
    for name, (count, command) in runs.items():
        code, told = run(*command)
        ranks = {int(rank) for rank in re.findall(rf"rank (\d) of {count} on \S+: well", told)}
        if code != 0 or ranks != set(range(count)):
            found.append(f"{name}: exit code {code}, ranks {sorted(ranks)} did well:\n{told}")
    code, told = run(*launch, *options, *program, str(VICTIM))
    survivors = set(re.findall(r"failed on rank (\d): rank \d ended", told))
    named = f"rank {VICTIM} ended without an exception" in told
    if code != KILLED or not named or survivors != {"0", "2", "3"}:
        found.append(f"a killed rank: exit code {code}, named by {sorted(survivors)}:\n{told}")
    return found


def main() -> int:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        found = problems(sys.argv[1:], folder)
    print("\n".join(found) or "all went well")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
