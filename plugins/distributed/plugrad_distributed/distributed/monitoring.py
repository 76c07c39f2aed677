"""monitored_barrier: rank 0 gets a message from each rank, so it can name the missing ones."""

from __future__ import annotations

import time

import numpy as np

from plugrad_distributed.carriers.carrier import COLLECTIVE_TAG
from plugrad_distributed.errors import DistBackendError
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work

__all__ = ["meet"]

HERE = COLLECTIVE_TAG - 1
GO_ON = COLLECTIVE_TAG - 2


def meet(group: ProcessGroup, limit: float, name_all: bool) -> None:
    """The barrier."""
    carrier = group.carrier("cpu")
    note = np.zeros(1, np.uint8)
    what = "monitored_barrier()"
    if group.rank() != 0:
        Work(group, what, carrier.send(note, 0, HERE), None, (), limit).wait()
        # Rank 0 may itself wait this long before it gives up.
        Work(group, what, carrier.recv(np.empty(1, np.uint8), 0, GO_ON), None, ()).wait(limit * 1.5)
        return
    pending = {
        rank: Work(group, what, carrier.recv(np.empty(1, np.uint8), rank, HERE), None, ())
        for rank in range(1, group.size())
    }
    end = time.monotonic() + limit
    while pending and time.monotonic() < end:
        pending = {rank: work for rank, work in pending.items() if not work.is_completed()}
        time.sleep(0.0001)
    if pending:
        missing = [group.ranks[rank] for rank in pending][: None if name_all else 1]
        raise DistBackendError(
            f"monitored_barrier(): rank{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(str, missing))} did not arrive within {limit:g} s"
        )
    for rank in range(1, group.size()):
        Work(group, what, carrier.send(note, rank, GO_ON), None, ()).wait()
