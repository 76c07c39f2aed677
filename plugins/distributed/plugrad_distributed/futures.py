"""`plugrad.futures`: results of communication that arrive later, under the names of
`torch.futures`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that is set later.

    The creator sets the value by `set_result`, perhaps on another thread. Futures of communication,
    from `Work.get_future()`, get their value when the program waits for them: no thread works in
    the background. So callbacks run on the waiting thread, and every rank communicates in the order
    of its waits.

    Args:
        devices: accepted and ignored.

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
        # Computes the value, for futures that get it when they are waited for.
        self._find: Callable[[], T] | None = None

    @classmethod
    def found_by(cls, find: Callable[[], T]) -> Future[T]:
        """A future that computes its value by a function when it is waited for."""
        made = cls()
        made._find = find
        return made

    def done(self) -> bool:
        """Whether the value, or an error, is set; does not wait.

        >>> import plugrad
        >>> future = plugrad.futures.Future()
        >>> future.done()
        False
        >>> future.set_result(1)
        >>> future.done()
        True
        """
        return self._over

    def wait(self) -> T:
        """Wait for the value and return it.

        Raises:
            Exception: the error that was set.

        >>> import plugrad
        >>> future = plugrad.futures.Future()
        >>> future.set_result(1)
        >>> future.wait()
        1
        """
        self._settle()
        return self.value()

    def _settle(self) -> None:
        """Compute the value, or store the error."""
        if self._over:
            return
        with self._lock:
            find, self._find = self._find, None
        if find is None:
            # Another thread computes it, or will set it.
            self._ended.wait()
            return
        try:
            value = find()
        except BaseException as error:
            self._end(None, error)
        else:
            self._end(value, None)

    def value(self) -> T:
        """The value, which must be set already; see `wait`.

        >>> import plugrad
        >>> plugrad.futures.Future().value()
        Traceback (most recent call last):
            ...
        RuntimeError: Future.value(): the value is not set yet: call wait() first
        """
        if not self._over:
            raise RuntimeError("Future.value(): the value is not set yet: call wait() first")
        if self._error is not None:
            raise self._error
        found: T = self._value
        return found

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future for the result of `callback(self)`, which runs when this one is done.

        >>> import plugrad
        >>> future = plugrad.futures.Future()
        >>> text = future.then(lambda done: f"got {done.value()}")
        >>> future.set_result(3)
        >>> text.wait()
        'got 3'
        """

        def find() -> S:
            self._settle()
            return callback(self)

        after = Future.found_by(find)
        # A wait for `after` itself has taken its computation.
        self.add_done_callback(lambda _: None if after._find is None else after._settle())
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        """Call `callback(self)` once the value is set; at once if it already is.

        >>> import plugrad
        >>> future = plugrad.futures.Future()
        >>> future.add_done_callback(lambda done: print("got", done.value()))
        >>> future.set_result(3)
        got 3
        """
        with self._lock:
            if not self._over:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: T) -> None:
        """Set the value.

        Raises:
            RuntimeError: a value is already set.

        >>> import plugrad
        >>> future = plugrad.futures.Future()
        >>> future.set_result(3)
        >>> future.set_result(4)
        Traceback (most recent call last):
            ...
        RuntimeError: Future can only be marked completed once
        """
        self._end(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` and `value` raise.

        Raises:
            RuntimeError: a value is already set.

        >>> import plugrad
        >>> future = plugrad.futures.Future()
        >>> future.set_exception(KeyError("weight"))
        >>> future.wait()
        Traceback (most recent call last):
            ...
        KeyError: 'weight'
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
    """A future for a list of futures, done when all of them are.

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
    """Wait for several futures and return their values.

    >>> from plugrad.futures import Future, wait_all
    >>> first, second = Future(), Future()
    >>> first.set_result(1)
    >>> second.set_result(2)
    >>> wait_all([first, second])
    [1, 2]
    """
    return [future.wait() for future in collect_all(futures).wait()]
