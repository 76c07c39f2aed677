"""The carrier of a group of one process, which needs no other package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from plugrad_distributed.carriers.carrier import ANY_SOURCE, Array, Carrier, Request

__all__ = ["AloneCarrier"]


class _Pending(Request):
    def __init__(self, carrier: AloneCarrier, out: Array, tag: int) -> None:
        self._carrier = carrier
        self._out = out
        self._tag = tag

    def test(self) -> bool:
        waiting = self._carrier.messages.get(self._tag)
        if not waiting:
            return False
        self._out.reshape(-1)[:] = waiting.pop(0)
        self.source = 0
        return True


class AloneCarrier(Carrier):
    """The carrier of a single rank, which may send messages to itself."""

    name: ClassVar[str] = "alone"

    def __init__(self) -> None:
        super().__init__(0, 1)
        self.messages: dict[int, list[Array]] = {}

    @classmethod
    def world(cls, rank: int, size: int, options: Any = None, timeout: float = 1800.0) -> Carrier:
        if rank not in (-1, 0) or size not in (-1, 1):
            raise ValueError(
                "init_process_group(): backend 'alone' is for one process: rank must be 0 and "
                f"world_size 1, got rank {rank} and world_size {size}"
            )
        return cls()

    def split(self, ranks: Sequence[int], name: str) -> Carrier:
        return AloneCarrier()

    def send(self, array: Array, dst: int, tag: int) -> Request | None:
        self.messages.setdefault(tag, []).append(array.reshape(-1).copy())
        return None

    def recv(self, out: Array, src: int, tag: int) -> Request | None:
        assert src in (0, ANY_SOURCE)
        return _Pending(self, out, tag)
