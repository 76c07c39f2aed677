"""Ranks wait for one another: `barrier`, `monitored_barrier`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from plugrad_distributed.distributed.calls import (
    finished,
    member,
)
from plugrad_distributed.distributed.queries import GroupMember
from plugrad_distributed.groups.work import Work, seconds

__all__ = ["barrier", "monitored_barrier"]


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Sequence[int] | None = None,
    timeout: timedelta | float | None = None,
) -> Work | None:
    """Wait until all ranks have called it.

    Args:
        device_ids: accepted and ignored.
        timeout: the longest wait; by default the group's timeout.

    >>> import plugrad.distributed as dist
    >>> done = []
    >>> def program():
    ...     if dist.get_rank() == 0:
    ...         done.append("rank 0")
    ...     dist.barrier()
    ...     return list(done)
    >>> dist.run_ranks(program, 2)[1]
    ['rank 0']
    """
    ranks = member(group, "barrier")
    if ranks is None:
        return None
    carrier = ranks.carrier("cpu")
    limit = None if timeout is None else seconds(timeout, "barrier")
    return finished(ranks.start("barrier()", carrier, carrier.barrier, timeout=limit), async_op)


def monitored_barrier(
    group: Any = None,
    timeout: timedelta | float | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """A barrier that names the missing ranks: rank 0 waits for a message from each.

    Args:
        timeout: how long rank 0 waits; by default the group's timeout.
        wait_all_ranks: whether to name all missing ranks instead of the first.

    Raises:
        DistBackendError: on rank 0, with the ranks that are missing.
        DistTimeoutError: on other ranks, if rank 0 did not answer.

    >>> import plugrad.distributed as dist
    >>> def program():
    ...     if dist.get_rank() == 0:
    ...         dist.monitored_barrier(timeout=0.1)
    >>> dist.run_ranks(program, 2)
    Traceback (most recent call last):
    plugrad_distributed.errors.DistBackendError: monitored_barrier(): rank 1 did not arrive within
    0.1 s
    """
    ranks = member(group, "monitored_barrier")
    if ranks is None or group is GroupMember.NON_GROUP_MEMBER:
        return
    from plugrad_distributed.distributed.monitoring import meet

    limit = ranks.timeout if timeout is None else seconds(timeout, "monitored_barrier")
    meet(ranks, limit, wait_all_ranks)
