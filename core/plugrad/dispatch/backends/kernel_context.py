"""Runs kernels with their own context variables, whatever the caller's are.

NumPy keeps its handling of inf and nan in one. Entering a context that has it set takes a tenth of
the time of `numpy.errstate`.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

_BUSY: Final = "cannot enter context"


def is_busy(error: BaseException) -> bool:
    """Whether a context could not be entered, because another thread or an outer call is in it."""
    return isinstance(error, RuntimeError) and str(error).startswith(_BUSY)


@final
class InContext:
    """A kernel on arrays that runs in a `contextvars.Context`.

    Wrappers of kernels call `run` themselves, and `run_in_copy` if the context `is_busy`; to
    anybody else this is a kernel like any other.

    >>> import contextvars
    >>> import numpy as np
    >>> from plugrad.plugins import InContext
    >>> quiet = contextvars.copy_context()
    >>> _ = quiet.run(np.seterr, divide="ignore")
    >>> InContext(np.log, quiet)(np.zeros(1))
    array([-inf])
    """

    def __init__(self, kernel: Any, context: Any) -> None:
        self.kernel: Any = kernel
        self.context: Any = context
        self.run: Any = context.run

    def __call__(self, *args: Any) -> Any:
        try:
            return self.run(self.kernel, *args)
        except RuntimeError as error:
            if not is_busy(error):
                raise
        return self.run_in_copy(args)

    def call_few(
        self, given: i64, first: Any, second: Any, third: Any, fourth: Any, fifth: Any
    ) -> Any:
        """Call it with the first one to five of some arguments, for which no tuple is made."""
        run = self.run  # called as an attribute, it would be looked up by name
        try:
            if given == 1:
                return run(self.kernel, first)
            if given == 2:
                return run(self.kernel, first, second)
            if given == 3:
                return run(self.kernel, first, second, third)
            if given == 4:
                return run(self.kernel, first, second, third, fourth)
            return run(self.kernel, first, second, third, fourth, fifth)
        except RuntimeError as error:
            if not is_busy(error):
                raise
        return self.run_in_copy(few(given, first, second, third, fourth, fifth))

    def run_in_copy(self, args: tuple[Any, ...]) -> Any:
        """Call the kernel in a copy of the context, which takes no time to make."""
        return self.context.copy().run(self.kernel, *args)


def few(
    given: i64, first: Any, second: Any, third: Any, fourth: Any, fifth: Any
) -> tuple[Any, ...]:
    """The first one to five of some arguments."""
    if given == 1:
        return (first,)
    if given == 2:
        return (first, second)
    if given == 3:
        return (first, second, third)
    if given == 4:
        return (first, second, third, fourth)
    return (first, second, third, fourth, fifth)


def call_few(
    function: Any, given: i64, first: Any, second: Any, third: Any, fourth: Any, fifth: Any
) -> Any:
    """Call a kernel on arrays with the first one to five of some arguments."""
    if isinstance(function, InContext):
        return function.call_few(given, first, second, third, fourth, fifth)
    if given == 1:
        return function(first)
    if given == 2:
        return function(first, second)
    if given == 3:
        return function(first, second, third)
    if given == 4:
        return function(first, second, third, fourth)
    return function(first, second, third, fourth, fifth)
