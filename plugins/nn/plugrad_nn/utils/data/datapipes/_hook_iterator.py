"""A wrapper for `__iter__` of IterDataPipe's subclasses: only the newest iterator of a pipe stays
valid, and errors name the pipe that raised them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

_ISSUE: Final = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to "
    "comment on this issue: https://github.com/pytorch/data/issues/45."
)


class SingleIterator:
    """A pipe with one valid iterator: a new iterator invalidates the previous one.

    Attributes:
        _valid_iterator_id: the number of the newest iterator; None before the first.
        _number_of_samples_yielded: how many samples the newest one has yielded.
    """

    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0

    def reset(self) -> None:
        """Called whenever an iterator begins: clear the state of the previous one, such as a
        buffer."""

    def _begin_iterator(self) -> int:
        """The number of a new iterator, by which the others are invalid."""
        number = self._valid_iterator_id
        self._valid_iterator_id = number = 0 if number is None else number + 1
        self._number_of_samples_yielded = 0
        self.reset()
        return number

    def _check_iterator(self, number: int) -> None:
        """Raises RuntimeError if another iterator has begun."""
        if number != self._valid_iterator_id:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from "
                f"the same IterDataPipe: {described(self)}\nThis may be caused by multiple "
                "references to the same IterDataPipe. We recommend using `.fork()` if that is "
                f"necessary.{_ISSUE}"
            )


def invalidated_child(main: Any) -> RuntimeError:
    """The error of an iterator of a pipe from `fork` or `demux` after another one has restarted."""
    return RuntimeError(
        "This iterator has been invalidated, because a new iterator has been created from one of "
        f"the ChildDataPipes of {described(main)}.{_ISSUE}"
    )


def described(pipe: Any) -> str:
    """The class of a pipe, and its arguments as far as it keeps them under their names."""
    kept = [name for name in sorted(inspect.signature(type(pipe)).parameters) if _keeps(pipe, name)]
    arguments = ", ".join(f"{name}={_brief(getattr(pipe, name))}" for name in kept)
    return f"{type(pipe).__name__}({arguments})"


def _keeps(pipe: Any, name: str) -> bool:
    return name in vars(pipe) or hasattr(type(pipe), name)


def _brief(value: Any) -> str:
    return str(value.__name__) if inspect.isfunction(value) else repr(value)


def guard(cls: type) -> None:
    """Wrap the `__iter__` that a class defines itself."""
    own = vars(cls).get("__iter__")
    if own is None:
        return
    wrap = _guarded_generator if inspect.isgeneratorfunction(own) else _guarded_function
    cls.__iter__ = wrap(own)  # type: ignore[attr-defined]  # of the class that is being made


def _guarded_generator(function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    # A generator as well: it is the first `next` that begins, and not the call.
    @functools.wraps(function)
    def iterate(self: SingleIterator, *args: Any, **kwargs: Any) -> Iterator[Any]:
        iterator = function(self, *args, **kwargs)
        try:
            yield from _Guarded(iterator, self, self._begin_iterator())
        except Exception as error:
            _name_pipe(error, self)
            raise

    return iterate


def _guarded_function(function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @functools.wraps(function)
    def iterate(self: SingleIterator, *args: Any, **kwargs: Any) -> Iterator[Any]:
        iterator = function(self, *args, **kwargs)
        return _Guarded(iterator, self, self._begin_iterator())

    return iterate


class _Guarded:
    """An iterator that its pipe may invalidate."""

    def __init__(self, iterator: Any, pipe: SingleIterator, number: int) -> None:
        self.iterator = iterator
        self.source_dp = pipe
        self.iterator_id = number

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        pipe = self.source_dp
        pipe._check_iterator(self.iterator_id)
        sample = next(self.iterator)
        pipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name: str) -> Any:
        if name == "iterator":  # not set yet during unpickling
            raise AttributeError(name)
        return getattr(self.iterator, name)


def _name_pipe(error: Exception, pipe: Any) -> None:
    """Add the pipe that raised an error to it, unless an earlier pipe has done so."""
    said = "thrown by __iter__ of"
    if not error.args or not isinstance(error.args[0], str):
        return
    if said not in error.args[0] and "iterator has been invalidated" not in error.args[0]:
        first = f"{error.args[0]}\nThis exception is {said} {described(pipe)}"
        error.args = (first, *error.args[1:])
