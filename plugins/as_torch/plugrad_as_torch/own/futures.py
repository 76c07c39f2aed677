"""`torch.futures`: values that come later, over Python's own futures."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]


T = TypeVar("T")


class Future(Generic[T]):
    """A value that is set later.

    >>> future = Future()
    >>> doubled = future.then(lambda done: done.value() * 2)
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._inside: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether the future has a value or an error."""
        return self._inside.done()

    def wait(self) -> T:
        """Wait for the value; raises the error if one was set instead."""
        return self._inside.result()

    def value(self) -> T:
        """The value, which must already be set."""
        if not self.done():
            raise RuntimeError("Future is not completed: call wait() for its value")
        return self._inside.result()

    def set_result(self, result: T) -> None:
        """Set the value, once."""
        if self.done():
            raise RuntimeError("Future can only be marked completed once.")
        self._inside.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` raises."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._inside.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call a function with this future once it is done."""
        self._inside.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The future of a function's result for this future."""
        after: Future[Any] = Future()

        def continued(done: Future[T]) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(continued)
        return after


def collect_all(futures: Sequence[Future[Any]]) -> Future[Any]:
    """A future with the list of these futures as its value, when all are done."""
    whole: Future[Any] = Future()
    left = len(futures)
    if not futures:
        whole.set_result([])

    def one_more(_: Future[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            whole.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one_more)
    return whole


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all futures and return their values."""
    return [future.wait() for future in futures]
