"""A program in which one rank fails: `failing_program.py HOW RANK [SECONDS]`. The others report the
outcome of their operation, and its time."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import distributed as dist
from tests.distributed.under_mpi import report


def fail(how: str) -> None:
    if how == "raise":
        raise ValueError("the data are rotten")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "kill beside a worker":
        if os.fork() == 0:
            time.sleep(3600)
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(3)
    if how == "end":
        sys.exit(4)
    if how == "hang":
        time.sleep(3600)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "no group":
        time.sleep(3600)


def work(how: str) -> None:
    """What ranks do that do not fail."""
    if how == "no group":
        dist.new_group([0, 1])
    dist.all_reduce(plugrad.ones(4))


def everything(seed: int) -> None:
    """Collectives of all kinds, until a rank is killed: long before the time is up."""
    order = random.Random(seed)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        size = order.choice([1, 1000, 300_000])
        x = plugrad.ones(size * dist.get_world_size())
        part = plugrad.ones(size)
        calls: list[Any] = [
            lambda x=x: dist.all_reduce(x),
            lambda x=x: dist.broadcast(x, 0),
            lambda x=x: dist.all_to_all_single(plugrad.empty_like(x), x),
            lambda x=x, part=part: dist.all_gather_into_tensor(x, part),
            lambda x=x, part=part: dist.reduce_scatter_tensor(part, x),
            lambda x=x: dist.all_reduce(x, async_op=True).wait(),
            lambda: dist.all_gather_object([None] * dist.get_world_size(), "text"),
            dist.barrier,
        ]
        order.choice(calls)()


def attempt(act: Callable[[], None]) -> None:
    """Report that this rank has started, then the error of the action, if it failed."""
    dist.barrier()
    report(None)
    start = time.monotonic()
    try:
        act()
    except dist.DistError as error:
        report([type(error).__name__, str(error), time.monotonic() - start])
        raise


def main() -> None:
    how, rank = sys.argv[1], int(sys.argv[2])
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else 60.0
    dist.init_process_group("mpi", timeout=limit)

    def act() -> None:
        if how == "everything":
            everything(rank)
        elif dist.get_rank() == rank:
            fail(how)
        work(how)

    attempt(act)


if __name__ == "__main__":
    main()
