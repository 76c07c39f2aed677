"""Handles of operations that were launched on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad_cuda import library
from plugrad_cuda.streams import Event, current_of
from plugrad_distributed.carriers.carrier import Request

if TYPE_CHECKING:
    from plugrad_cuda.collectives.carrier import NCCLCarrier

__all__ = ["Enqueued"]


class Enqueued(Request):
    """An operation on a stream of the carrier's.

    Attributes:
        index: the GPU.
        done: the mark after it; None until it was given to the GPU, as messages of a batch are at
            its end.
    """

    def __init__(
        self, carrier: NCCLCarrier, index: int, done: Event | None, source: int = -1
    ) -> None:
        self._carrier = carrier
        self.index = index
        self.done = done
        self.source = source
        self.follows = not carrier.blocking

    def test(self) -> bool:
        self._carrier.check_others()
        return self.done is not None and self.done.query()

    def follow(self) -> None:
        """What the calling thread's stream is given from now on comes after the operation."""
        self._carrier.check_others()
        assert self.done is not None, "waited for within a batch"
        with library.cupy().cuda.Device(self.index):
            self.done.wait(current_of(self.index))


class Stopped(Request):
    """The end of all work on streams, for which the host waits."""

    def __init__(self, carrier: NCCLCarrier, marks: list[Any]) -> None:
        self._carrier = carrier
        self._marks = marks

    def test(self) -> bool:
        self._carrier.check_others()
        return all(mark.query() for mark in self._marks)
