"""Passes an exception of a worker to the user, with its traceback."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn


class KeyErrorMessage(str):
    """A message that KeyError prints directly, although it prints its argument's `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The current exception, in a form that another process can raise.

    Attributes:
        exc_type: its class.
        exc_msg: its traceback and message.
        where: a description of where it happened.
    """

    exc_type: type[BaseException]

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        assert kind is not None  # it is called where an exception is handled
        self.exc_type = kind
        self.exc_name = kind.__name__
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def without_class(self) -> ExceptionWrapper:
        """The same for a process that may not have the class: a RuntimeError with its message."""
        made = ExceptionWrapper.__new__(ExceptionWrapper)
        made.__dict__.update(self.__dict__, exc_type=RuntimeError)
        return made

    def reraise(self) -> NoReturn:
        """Raise an exception of the same class, or a RuntimeError if the class does not accept a
        message; the message has the traceback."""
        message = f"Caught {self.exc_name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(message))
        if getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)  # type: ignore[call-arg]  # as such classes are
        try:
            exception = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise exception
