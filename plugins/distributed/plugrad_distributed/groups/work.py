"""Work: an operation of a group, which may still run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from plugrad_distributed.carriers.carrier import Request
from plugrad_distributed.errors import DistBackendError, DistTimeoutError
from plugrad_distributed.futures import Future
from plugrad_distributed.groups.progress import go_on

if TYPE_CHECKING:
    from plugrad import Tensor
    from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["Work"]

# A wait polls in a loop for this many seconds, then with sleeps of increasing length.
EAGER = 0.0005
SHORTEST = 0.00002
LONGEST = 0.001
# A carrier that moves bytes only while it is polled is polled longer without a pause, and at first
# without yielding the processor: each pause adds to its time.
ASKED = 0.05
SPINNING = 0.001
# With more ranks than cores, a rank that spins takes a core from the rank that it waits for. So it
# polls a few times, then sleeps; the operating system makes even the shortest pause about 0.05 ms.
CROWDED_SHORTEST = 0.000001
CROWDED_LONGEST = 0.0002


class Work:
    """An operation that a group started. It is complete once `wait` has returned.

    Until then, do not write to its tensors, and do not read its results.

    Attributes:
        source: the sender's number in the group; -1 if any rank may send, and for other operations.

    >>> import plugrad, plugrad.distributed as dist
    >>> def total():
    ...     x = plugrad.tensor([float(dist.get_rank())])
    ...     work = dist.all_reduce(x, async_op=True)
    ...     # Compute something else here.
    ...     work.wait()
    ...     return x.item()
    >>> dist.run_ranks(total, 4)
    [6.0, 6.0, 6.0, 6.0]
    """

    def __init__(
        self,
        group: ProcessGroup,
        what: object,
        request: Request | None,
        finish: Callable[[], None] | None,
        results: Sequence[Tensor],
        timeout: float | None = None,
        keeps: object = None,
    ) -> None:
        self._group = group
        # Keeps the carrier's arrays alive.
        self._keeps = keeps
        self._what = what
        self._request = request
        self._finish = finish
        self._results = list(results)
        self._timeout = group.timeout if timeout is None else timeout
        self._over = False
        self.source = -1
        self._error: BaseException | None = None
        # There is one if a thread also polls.
        self._lock: threading.Lock | None = None
        self._awaited = False
        if request is None:
            self._end()

    def _end(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        self._keeps = None
        self._over = True

    def _ask(self) -> bool:
        """Poll the carrier once."""
        request = self._request
        if request is None:
            return True
        if self._error is not None:
            raise self._error
        try:
            if not request.test():
                return False
        except DistBackendError as error:
            self._error = self._group.failed(self._what, error)
            raise self._error from error.__cause__
        except BaseException as error:
            self._error = error
            raise
        if request.source >= 0:
            self.source = request.source
        self._request = None
        return True

    def _spin(self, limit: float) -> bool:
        """Poll the carrier without a pause, then complete the work in the usual way if it is
        done."""
        if self._lock is None:
            return self._spun(limit) and self._advance()
        with self._lock:
            over = self._spun(limit)
        return over and self._advance()

    def _spun(self, limit: float) -> bool:
        """Poll the carrier without a pause; whether it is done."""
        request = self._request
        if request is None or self._error is not None:
            return True
        try:
            if not request.spin(limit):
                return False
        except DistBackendError as error:
            self._error = self._group.failed(self._what, error)
            raise self._error from error.__cause__
        if request.source >= 0:
            self.source = request.source
        self._request = None
        return True

    def _advance(self) -> bool:
        """Check once whether it is complete."""
        if self._over:
            return True
        if self._lock is None:
            if not self._ask():
                return False
        else:
            with self._lock:
                if not self._ask():
                    return False
        if self._error is not None:
            raise self._error
        try:
            self._end()
        except BaseException as error:
            self._error = error
            raise
        return True

    def in_background(self) -> Work:
        """Let the thread poll it, if the carrier needs that; returns this work."""
        if self._request is not None and self._request.needs_asking:
            self._lock = threading.Lock()
            go_on(self)
        return self

    def poke(self) -> bool:
        """Poll the carrier once, without completing the work; returns whether polling can stop."""
        if self._awaited or self._lock is None or self._error is not None:
            return True
        with self._lock:
            try:
                return self._ask()
            except BaseException:
                # The wait will raise it.
                return True

    @property
    def crowded(self) -> bool:
        """Whether it waits for ranks that are more than the cores of this machine."""
        request = self._request
        return request is not None and request.crowded

    def is_completed(self) -> bool:
        """Whether it is complete; does not wait.

        >>> import plugrad, plugrad.distributed as dist
        >>> def polled():
        ...     work = dist.all_reduce(plugrad.ones(2), async_op=True)
        ...     while not work.is_completed():
        ...         pass
        ...     return work.is_success(), work.exception()
        >>> dist.run_ranks(polled, 2)
        [(True, None), (True, None)]
        """
        return self._advance()

    def is_success(self) -> bool:
        """Whether it is complete and did not fail."""
        return self._over

    def exception(self) -> BaseException | None:
        """The error that it failed with, or None."""
        return self._error

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until it is complete; returns True.

        Args:
            timeout: the longest wait, as a timedelta or in seconds; by default the group's timeout.

        Raises:
            DistTimeoutError: it took longer. The group cannot be used afterwards.
            DistBackendError: it failed, or another rank did.

        >>> import plugrad, plugrad.distributed as dist
        >>> def late():
        ...     # No rank sends, so the message never arrives.
        ...     work = dist.irecv(plugrad.empty(1), src=1 - dist.get_rank())
        ...     try:
        ...         work.wait(timeout=0.01)
        ...     except dist.DistTimeoutError:
        ...         return "too late"
        >>> dist.run_ranks(late, 2)
        ['too late', 'too late']
        """
        if self._request is not None and self._request.follows:
            self._follow()
        if self._advance():
            return True
        limit = self._timeout if timeout is None else seconds(timeout, "wait")
        group = self._group
        self._awaited = True
        # After a failure it stays set, so that other ranks can query it.
        group.waiting = self._what
        self._poll(limit)
        group.waiting = ""
        return True

    def _follow(self) -> None:
        """The device's stream waits for it, so the host need not."""
        assert self._request is not None
        try:
            self._request.follow()
        except DistBackendError as error:
            self._error = self._group.failed(self._what, error)
            raise self._error from error.__cause__
        self._request = None

    def _poll(self, limit: float) -> None:
        start = time.monotonic()
        request = self._request
        eager = EAGER
        if request is not None and request.needs_asking:
            if request.crowded:
                self._poll_crowded(limit, start)
                return
            eager = ASKED
            if self._lock is None and self._spin(min(SPINNING, limit)):
                return
        pause = SHORTEST
        while not self._advance():
            waited = time.monotonic() - start
            self._check_time(waited, limit)
            if waited < eager:
                time.sleep(0)
            else:
                time.sleep(pause)
                pause = min(pause * 1.5, LONGEST)

    def _poll_crowded(self, limit: float, start: float) -> None:
        pause = CROWDED_SHORTEST
        while not self._spin(0.0):
            self._check_time(time.monotonic() - start, limit)
            time.sleep(pause)
            pause = min(pause * 1.5, CROWDED_LONGEST)

    def _check_time(self, waited: float, limit: float) -> None:
        """Raise if it waited for too long.

        Raises:
            DistTimeoutError: it did.
        """
        if waited > limit:
            self._error = self._group.timed_out(self._what, limit)
            raise self._error

    def result(self) -> list[Any]:
        """The tensors that it wrote to, once it is complete.

        >>> import plugrad, plugrad.distributed as dist
        >>> dist.run_ranks(lambda: dist.all_reduce(plugrad.ones(2), async_op=True).result(), 2)
        [[tensor([2., 2.])], [tensor([2., 2.])]]
        """
        self.wait()
        return list(self._results)

    def get_future(self) -> Future[list[Any]]:
        """A future for `result()`. It completes, and runs its callbacks, when it is waited for.

        >>> import plugrad, plugrad.distributed as dist
        >>> def mean():
        ...     work = dist.all_reduce(plugrad.ones(2) * dist.get_rank(), async_op=True)
        ...     halved = work.get_future().then(lambda done: done.value()[0] / 2)
        ...     return halved.wait()
        >>> dist.run_ranks(mean, 2)[0]
        tensor([0.5000, 0.5000])
        """
        return Future.found_by(self.result)

    def source_rank(self) -> int:
        """The rank that a received message came from.

        >>> import plugrad, plugrad.distributed as dist
        >>> def sender():
        ...     if dist.get_rank() == 1:
        ...         dist.send(plugrad.ones(1), dst=0)
        ...         return None
        ...     work = dist.irecv(plugrad.empty(1))
        ...     return work.source_rank()
        >>> dist.run_ranks(sender, 2)
        [1, None]
        """
        self.wait()
        return self._group.ranks[self.source] if self.source >= 0 else -1

    def synchronize(self) -> None:
        """`wait()`."""
        self.wait()

    def __repr__(self) -> str:
        state = "over" if self._over else "failed" if self._error else "going on"
        return f"<Work {self._what} of group {self._group.name!r}: {state}>"


def seconds(timeout: timedelta | float, function: str) -> float:
    """A timeout in seconds.

    Raises:
        TypeError: it is neither a timedelta nor a number.
        ValueError: it is not positive.
    """
    if isinstance(timeout, timedelta):
        found = timeout.total_seconds()
    elif isinstance(timeout, int | float) and not isinstance(timeout, bool):
        found = float(timeout)
    else:
        raise TypeError(
            f"{function}(): timeout must be a timedelta or a number of seconds, got "
            f"{type(timeout).__name__}"
        )
    if not found > 0:
        raise ValueError(f"{function}(): timeout must be positive, got {found} s")
    return found


def late(what: object, group: str, limit: float, rank: int, missing: str) -> DistTimeoutError:
    """The error of an operation that did not end in time."""
    detail = f": {missing}" if missing else ""
    return DistTimeoutError(
        f"{what} in group {group!r} did not end within {limit:g} s on rank {rank}{detail}"
    )
