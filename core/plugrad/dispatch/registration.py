"""The registration of a kernel, which can be undone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, final

from plugrad.dispatch.keys import DispatchKey

# Held while a table of kernels changes, and while an operator notes what it resolved.
LOCK: Final[Any] = threading.RLock()


@final
class RegistrationHandle:
    """Undoes one registration: `remove()`, or leaving it as a context manager.

    Args:
        kernels: the table that the kernel was put into.
        forget: called after the kernel is removed, because resolved kernels are stale.
        op_name: the operator's qualified name; empty for a fallback.
    """

    def __init__(
        self,
        kernels: dict[DispatchKey, list[Any]],
        key: DispatchKey,
        kernel: Any,
        forget: Callable[[], None],
        op_name: str = "",
    ) -> None:
        self._kernels: dict[DispatchKey, list[Any]] | None = kernels
        self._key = key
        self._kernel = kernel
        self._forget = forget
        self._op_name = op_name

    @property
    def is_removed(self) -> bool:
        return self._kernels is None

    @property
    def name(self) -> str:
        """The operator's name and the dispatch key's, with a blank between."""
        return f"{self._op_name} {self._key.name}"

    def remove(self) -> None:
        """Take the kernel out again; an earlier one for the key is back. Idempotent."""
        with LOCK:
            kernels = self._kernels
            if kernels is None:
                return
            self._kernels = None
            # Readers take no lock: they must find a list that stays as it is.
            stack = list(kernels.get(self._key, ()))
            for position in range(len(stack) - 1, -1, -1):
                if stack[position] is self._kernel:
                    del stack[position]
                    break
            if stack:
                kernels[self._key] = stack
            else:
                kernels.pop(self._key, None)
            self._forget()

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()
