"""`plugrad.futures`: what will be there once communication is over, by the names of
`torch.futures`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that comes later.

    Who makes one gives it the value by `set_result`, maybe on another thread. Those of
    communication, `Work.get_future()`, get theirs when somebody waits: no thread works behind them.
    So callbacks run on the thread that waits, and what they communicate happens in the order of the
    waits on every rank.

    Args:
        devices: nothing is done with it.

    >>> import plugrad
    >>> future = plugrad.futures.Future()
    >>> twice = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> twice.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._over = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], object]] = []
        # What finds the value, for futures that get theirs when somebody waits.
        self._find: Callable[[], T] | None = None

    @classmethod
    def found_by(cls, find: Callable[[], T]) -> Future[T]:
        """A future whose value is computed by a function when it is waited for."""
        made = cls()
        made._find = find
        return made

    def done(self) -> bool:
        """Whether the value, or an error, is there; does not wait."""
        return self._over

    def wait(self) -> T:
        """The value, once it is there.

        Raises:
            Exception: what it failed with.
        """
        self._settle()
        return self.value()

    def _settle(self) -> None:
        """Have the value found, or an error, which is kept."""
        if self._over:
            return
        with self._lock:
            find, self._find = self._find, None
        if find is None:
            # Another thread finds it, or will set it.
            self._ended.wait()
            return
        try:
            value = find()
        except BaseException as error:
            self._end(None, error)
        else:
            self._end(value, None)

    def value(self) -> T:
        """The value, which must be there; see `wait`."""
        if not self._over:
            raise RuntimeError("Future.value(): the value is not there yet: call wait() first")
        if self._error is not None:
            raise self._error
        found: T = self._value
        return found

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of what `callback(self)` returns, which runs once this one is done."""

        def find() -> S:
            self._settle()
            return callback(self)

        after = Future.found_by(find)
        # Whoever waits for `after` itself took what finds its value away.
        self.add_done_callback(lambda _: None if after._find is None else after._settle())
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        """Call `callback(self)` once the value is there; at once if it is."""
        with self._lock:
            if not self._over:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: T) -> None:
        """Give it its value.

        Raises:
            RuntimeError: it has one.
        """
        self._end(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Let it fail: `wait` and `value` raise this.

        Raises:
            RuntimeError: it has a value.
        """
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._end(None, result)

    def _end(self, value: T | None, error: BaseException | None) -> None:
        with self._lock:
            if self._over:
                raise RuntimeError("Future can only be marked completed once")
            self._value, self._error, self._find, self._over = value, error, None, True
            callbacks, self._callbacks = self._callbacks, []
        self._ended.set()
        for callback in callbacks:
            callback(self)


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of a list of futures, done once all of them are.

    >>> import plugrad
    >>> both = [plugrad.futures.Future() for _ in range(2)]
    >>> every = plugrad.futures.collect_all(both)
    >>> for number, future in enumerate(both):
    ...     future.set_result(number)
    >>> [future.value() for future in every.wait()]
    [0, 1]
    """
    given = list(futures)

    def find() -> list[Future[Any]]:
        for future in given:
            future.wait()
        return given

    return Future.found_by(find)


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The values of several futures, once all of them are there."""
    return [future.wait() for future in collect_all(futures).wait()]
