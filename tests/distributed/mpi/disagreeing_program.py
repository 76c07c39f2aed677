"""A program with ranks that disagree repeatedly, each time in a new group. It reports what
each of them raised, by case: `disagreeing_program.py mismatches|delays`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import distributed as dist
from tests.distributed.under_mpi import report

# What rank 1 does while the others sum four numbers.
MISMATCHES: dict[str, Callable[[Any], Any]] = {
    "shape": lambda group: dist.all_reduce(plugrad.ones(5), group=group),
    "dtype": lambda group: dist.all_reduce(plugrad.ones(4, dtype=plugrad.float64), group=group),
    "reduction": lambda group: dist.all_reduce(plugrad.ones(4), "max", group=group),
    "collective": lambda group: dist.broadcast(plugrad.ones(4), 0, group=group),
    "order": dist.barrier,
    "sizes": lambda group: dist.all_gather(
        [plugrad.ones(1), plugrad.ones(2)], plugrad.ones(2), group
    ),
}


def in_sleep(group: Any) -> None:
    time.sleep(3.5)


def in_receiving(group: Any) -> None:
    with contextlib.suppress(dist.DistTimeoutError):
        dist.irecv(plugrad.ones(2), 0, group).wait(3.5)


DELAYS: dict[str, Callable[[Any], Any]] = {"sleep": in_sleep, "message": in_receiving}


def raised(call: Callable[[], Any]) -> Any:
    start = time.monotonic()
    try:
        call()
    except dist.DistError as error:
        return [type(error).__name__, str(error), time.monotonic() - start]
    return None


def main() -> None:
    dist.init_process_group("mpi", timeout=30)
    cases = MISMATCHES if sys.argv[1] == "mismatches" else DELAYS
    limit = 30 if cases is MISMATCHES else 1.5
    found = {}
    for name, other in cases.items():
        group = dist.new_group(timeout=limit)
        if dist.get_rank() == 1:
            found[name] = raised(lambda group=group, other=other: other(group))
        else:
            found[name] = raised(lambda group=group: dist.all_reduce(plugrad.ones(4), group=group))
        dist.barrier()
    # A group that failed is refused afterwards; others go on.
    found["again"] = raised(lambda: dist.barrier(group))
    report(found)


if __name__ == "__main__":
    main()
