"""What a case of a family gives back when something is wrong, and counters for what cases did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_NUMBER = re.compile(r"-?\d+(\.\d*)?(e[-+]?\d+)?|0x[0-9a-f]+")


@dataclass(frozen=True)
class Finding:
    """A fault.

    Attributes:
        summary: what is wrong; the first line alone must be enough to recognise it.
        program: Python text that shows the fault when it is pasted into a file and run.
        group: findings of one group are shown once. By default the summary's first line without
            its numbers.
        ends_process: whether the process ended by itself.
    """

    summary: str
    program: str
    group: str = ""
    ends_process: bool = False

    @property
    def key(self) -> str:
        return self.group or _NUMBER.sub("#", self.summary.partition("\n")[0])


counts: Counter[str] = Counter()
"""What the cases of this process did beside being cases: `counts["interrupts"] += 1`."""

state: list[Any] = [None]
"""What this worker shares with the runner, if it is one."""


@contextmanager
def oracle() -> Iterator[None]:
    """What happens here is PyTorch's doing: a crash or a hang is no finding."""
    shared = state[0]
    if shared is None:
        yield
        return
    shared[2] = 1.0
    yield
    shared[2] = 0.0
