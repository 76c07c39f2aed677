"""Which machines have more processes than cores, by what the processes say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from plugrad_distributed.carriers import placement


class Said:
    """A communicator in which other processes say where they are and which cores they may use."""

    def __init__(self, *others: tuple[str, int]) -> None:
        self.others = others

    def allgather(self, own: Any) -> list[Any]:
        return [own, *self.others]


@pytest.mark.parametrize(
    ("own", "others", "crowded"),
    [
        (0b01, [("here", 0b10)], False),  # each has a core of its own
        (0b11, [("here", 0b11)], False),
        (0b11, [("here", 0b11), ("here", 0b11)], True),
        (0b11, [("there", 0b11), ("there", 0b11)], False),
        (0b01, [("here", 0b01)], True),  # both on one core of several
    ],
)
def test_a_machine_with_more_processes_than_cores_is_crowded(
    own: int, others: list[tuple[str, int]], crowded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "_cores", lambda: own)
    assert placement.is_crowded(Said(*others), "here") is crowded
