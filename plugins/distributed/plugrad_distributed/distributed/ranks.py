"""run_ranks: runs a function on several ranks, as threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import plugrad
from plugrad_distributed.carriers.threads import Exchange
from plugrad_distributed.distributed.starting import init_process_group
from plugrad_distributed.errors import DistBackendError
from plugrad_distributed.groups.world import World, play

__all__ = ["run_ranks"]


def run_ranks(
    function: Callable[..., Any],
    world_size: int,
    *args: Any,
    timeout: timedelta | float = 60.0,
) -> list[Any]:
    """Call a function on `world_size` ranks, each a thread with its own world, and return the
    results by rank.

    `get_rank`, `all_reduce` and all other functions work there as in processes, so programs can be
    tested without MPI. The default group already exists.

    Ranks share the state of the process, such as its random numbers. Only one thread can capture at
    a time, so a step for `plugrad.compile` cannot communicate here. Backward passes stay on the
    rank's thread.

    Raises:
        Exception: the exception of the first rank that failed; others stop at their next
            collective.

    >>> import plugrad, plugrad.distributed as dist
    >>> def total():
    ...     x = plugrad.tensor([float(dist.get_rank())])
    ...     dist.all_reduce(x)
    ...     return x.item()
    >>> dist.run_ranks(total, 4)
    [6.0, 6.0, 6.0, 6.0]
    """
    if not isinstance(world_size, int) or world_size < 1:
        raise ValueError(f"run_ranks(): world_size must be positive, got {world_size!r}")
    exchange = Exchange(world_size)
    results: list[Any] = [None] * world_size

    def run(rank: int) -> None:
        world = World(f"@{rank}/{id(exchange)}")
        play(world)
        try:
            init_process_group(
                "fake", timeout=timeout, rank=rank, world_size=world_size, pg_options=exchange
            )
            # Ranks would share device threads, where a waiting rank would block the others.
            with plugrad.autograd.set_multithreading_enabled(False):
                results[rank] = function(*args)
        except BaseException as error:
            exchange.failed[rank] = error
        finally:
            world.clear()
            play(None)

    threads = [
        threading.Thread(target=run, args=(rank,), name=f"rank {rank}", daemon=True)
        for rank in range(world_size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if exchange.failed:
        # Ranks that failed because another one had are not the cause.
        first = [
            error
            for error in exchange.failed.values()
            if not (isinstance(error, DistBackendError) and error.__cause__ is not None)
        ]
        raise (first or list(exchange.failed.values()))[0]
    return results
