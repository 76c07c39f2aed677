"""Kernels that run with context variables of their own, whatever the caller's are.

NumPy keeps in one what it does about inf and nan. To enter a context that says so costs a tenth of
`numpy.errstate`.
"""

from __future__ import annotations

from typing import Any, Final, final

_BUSY: Final = "cannot enter context"


def is_busy(error: BaseException) -> bool:
    """Whether a context could not be entered, because another thread or an outer call is in it."""
    return isinstance(error, RuntimeError) and str(error).startswith(_BUSY)


@final
class InContext:
    """A kernel on arrays that runs in a `contextvars.Context`.

    Wrappers of kernels call `run` themselves, and `run_in_copy` if the context `is_busy`; to
    anybody else this is a kernel like any other.
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

    def run_in_copy(self, args: tuple[Any, ...]) -> Any:
        """Call the kernel in a copy of the context, which takes no time to make."""
        return self.context.copy().run(self.kernel, *args)
