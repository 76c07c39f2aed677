"""ProcessGroup: ranks that communicate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import plugrad
from plugrad_distributed.carriers.carrier import Carrier, Request
from plugrad_distributed.errors import DistBackendError, DistError, DistTimeoutError
from plugrad_distributed.groups.described import Described
from plugrad_distributed.groups.names import named
from plugrad_distributed.groups.work import Work, late

if TYPE_CHECKING:
    from plugrad import Tensor

__all__ = ["ProcessGroup"]

FINGERPRINT = 256


def _summed(layout: Any, shape: Sequence[int]) -> Described:
    """The call of `all_reduce` that `sum_now` runs for an array."""
    return Described("all_reduce", plugrad.from_numpy(np.empty(0, layout)).dtype, shape, "sum")


class ProcessGroup:
    """Some of the processes, numbered from 0. `init_process_group` makes the group of all,
    `new_group` others.

    Attributes:
        name: its name for operators; the same in all of its processes.
        ranks: the global numbers of its processes.
        timeout: how long an operation may take, in seconds.
        backend: the name of its carrier, or of several by device: ``"cpu:mpi,cuda:nccl"``.

    >>> import plugrad.distributed as dist
    >>> def pair():
    ...     group = dist.new_group([1, 2], group_desc="the last two")
    ...     if dist.get_rank(group) < 0:
    ...         return None
    ...     return group.ranks, group.rank(), group.size(), group.group_desc
    >>> dist.run_ranks(pair, 3)
    [None, ((1, 2), 0, 2, 'the last two'), ((1, 2), 1, 2, 'the last two')]
    """

    def __init__(
        self,
        name: str,
        ranks: Sequence[int],
        carriers: Mapping[str, Carrier],
        timeout: float,
        backend: str,
        description: str = "",
    ) -> None:
        self.name = name
        self.ranks = tuple(ranks)
        self.timeout = timeout
        self.backend = backend
        self.group_desc = description or "undefined"
        # Carriers by device type; "" is for all others.
        self._carriers = dict(carriers)
        first = next(iter(self._carriers.values()))
        self._rank = first.rank
        self._size = first.size
        self._compared = 0
        self._problem = ""
        # The latest operation. What `sum_now` does becomes a `Described` where a message needs it.
        self.last: object = ""
        # The operation that this rank waits for.
        self.waiting: object = ""
        for carrier in self._carriers.values():
            carrier.timeout = timeout
            carrier.state = self._state
        self.debug = os.environ.get("PLUGRAD_DISTRIBUTED_DEBUG", "0") not in ("", "0", "OFF")
        # Reduces an array of the CPU over all ranks in place, and returns when that is done: a
        # faster form of `start` and `Work.wait`. None where there is none, or none can be used.
        self.sum_now: Callable[[Any], None] | None = None
        host = self._carriers.get("cpu", self._carriers.get("", first))
        if self._size > 1 and "cpu" in host.devices and not self.debug:
            self.sum_now = host.summing(self)

    @property
    def group_name(self) -> str:
        """`name`."""
        return self.name

    def rank(self) -> int:
        """This process's number in the group.

        >>> import plugrad.distributed as dist
        >>> dist.run_ranks(lambda: dist.group.WORLD.rank(), 2)
        [0, 1]
        """
        return self._rank

    def size(self) -> int:
        """The number of its processes.

        >>> import plugrad.distributed as dist
        >>> dist.run_ranks(lambda: dist.group.WORLD.size(), 2)
        [2, 2]
        """
        return self._size

    def carrier(self, device_type: str) -> Carrier:
        """The carrier for arrays of a device type.

        Raises:
            RuntimeError: the group was destroyed, or an operation failed.
        """
        if self._problem:
            raise DistError(f"group {self.name!r} cannot be used any more: {self._problem}")
        carriers = self._carriers
        found = carriers.get(device_type)
        if found is None:
            found = carriers.get("")
        return next(iter(carriers.values())) if found is None else found

    def start(
        self,
        what: object,
        carrier: Carrier,
        begin: Callable[[], Request | None],
        finish: Callable[[], None] | None = None,
        results: Sequence[Tensor] = (),
        *,
        alike: bool | str = True,
        timeout: float | None = None,
    ) -> Work:
        """Start an operation.

        Args:
            what: its name, and the arguments that must agree on all ranks; `str(what)` is shown in
                messages.
            begin: starts it on the carrier.
            finish: runs once the carrier is done, on the thread that waits.
            results: the tensors that it writes to.
            alike: whether all ranks of the group call it: then `PLUGRAD_DISTRIBUTED_DEBUG=1`
                compares `what`, or this text if shapes may differ.
        """
        self.last = what
        if alike:
            self._check(what if alike is True else alike, carrier)
        try:
            request = begin()
        except DistBackendError as error:
            raise self.failed(what, error) from error.__cause__
        return Work(self, what, request, finish, results, timeout, keeps=begin)

    def wait_for_sum(self, array: Any, request: Request) -> None:
        """Wait until a sum that `sum_now` started is complete."""
        Work(self, _summed(array.dtype, array.shape), request, None, (), keeps=array).wait()

    def failed_sum(self, array: Any, error: DistBackendError) -> DistBackendError:
        """`failed` for a sum of `sum_now`."""
        return self.failed(_summed(array.dtype, array.shape), error)

    def _check(self, what: object, carrier: Carrier) -> None:
        if self.debug and self._size > 1:
            self._compare(what, carrier)

    def _state(self) -> tuple[str, str]:
        last = self.last
        return str(self.waiting), str(_summed(*last) if isinstance(last, tuple) else last)

    def _compare(self, what: object, carrier: Carrier) -> None:
        """Compare this call with the other ranks' calls.

        Raises:
            DistBackendError: not all call the same.
        """
        self._compared += 1
        mine = np.zeros(FINGERPRINT, np.uint8)
        text = f"#{self._compared} {what}".encode()[:FINGERPRINT]
        mine[: len(text)] = np.frombuffer(text, np.uint8)
        theirs = np.empty((self._size, FINGERPRINT), np.uint8)
        Work(self, what, carrier.all_gather(theirs, mine), None, ()).wait()
        calls = [bytes(row).rstrip(b"\0").decode(errors="replace") for row in theirs]
        if len(set(calls)) > 1:
            told = "; ".join(
                f"rank {rank}: {call}" for rank, call in zip(self.ranks, calls, strict=True)
            )
            self._spoil("its ranks did not call the same")
            raise DistBackendError(
                f"the ranks of group {self.name!r} call different collectives: {told}"
            )

    def _spoil(self, problem: str) -> None:
        """Start no more operations."""
        self._problem = problem
        self.sum_now = None

    def timed_out(self, what: object, limit: float) -> BaseException:
        """The error of an operation that did not end in time. The group cannot be used afterwards,
        because its ranks may no longer agree on the order of operations."""
        missing = ""
        for carrier in self._carriers.values():
            missing = missing or carrier.missing(str(what))
        error = late(what, self.name, limit, self.ranks[self._rank], missing)
        self._spoil(str(error))
        return error

    def failed(self, what: object, error: DistBackendError) -> DistBackendError:
        """The user's error for an operation that the carrier could not complete. The group cannot
        be used afterwards."""
        told = f"{what} in group {self.name!r} failed on rank {self.ranks[self._rank]}: {error}"
        self._spoil(self._problem or told)
        is_late = isinstance(error, DistTimeoutError)
        return DistTimeoutError(told) if is_late else DistBackendError(told)

    def close(self) -> None:
        """Release its carriers; nothing can be called afterwards."""
        for carrier in set(self._carriers.values()):
            carrier.close()
        self._spoil(self._problem or "it was destroyed")

    def local(self, rank: int, argument: str) -> int:
        """The number in the group of a global rank.

        Raises:
            ValueError: it is not in the group.
        """
        try:
            return self.ranks.index(rank)
        except ValueError:
            raise ValueError(
                f"{argument}: rank {rank} is not part of group {self.name!r}, which has the ranks "
                f"{list(self.ranks)}"
            ) from None

    def __repr__(self) -> str:
        return (
            f"<ProcessGroup {self.name!r}: rank {self._rank} of {self._size}, "
            f"backend {self.backend!r}>"
        )

    # Copies of objects with groups, such as modules, refer to the same group.

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self

    def __reduce__(self) -> Any:
        return named, (self.name,)
