"""Errors that depend on values: found on the device, raised when the program waits for it.

A kernel cannot read values without waiting for them. So a program that may get invalid values (an
index out of range, a zero divisor among integers) also returns a flag, and the flag is read when it
is available anyway: by `.item()`, printing, copies to the host and `synchronize()`, or by a later
kernel of this kind, if it has arrived by then. PyTorch's CUDA errors come at the same times. In a
function that JAX traces, values are not checked.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jax.core

from plugrad.plugins.scopes import Locked, hold_while_forking


class Flag(NamedTuple):
    """A 0-dim bool on a device, and what to raise where it is true, given `detail`'s value."""

    bad: Any
    error: Callable[[Any], Exception]
    detail: Any


_pending: Final[deque[Flag]] = deque()
_lock: Final = threading.Lock()
hold_while_forking(_lock)


def raise_later(bad: Any, error: Callable[[Any], Exception], detail: Any = None) -> None:
    """Have `error(detail)` raised if `bad` turns out to be true.

    Args:
        bad: a 0-dim array of bool.
        error: makes the exception.
        detail: an array that `error` gets as a NumPy array, for the message; or None.
    """
    if isinstance(bad, jax.core.Tracer):
        return
    raise_found(wait=False)
    _pending.append(Flag(bad, error, detail))


def raise_found(wait: bool = True) -> None:
    """Raise the oldest error that was found; remove the flags without errors.

    Args:
        wait: whether to wait for flags that have not arrived yet.
    """
    while _pending:
        with Locked(_lock):
            if not _pending or not (wait or _pending[0].bad.is_ready()):
                return
            flag = _pending.popleft()
        if flag.bad:
            _pending.clear()
            raise flag.error(None if flag.detail is None else jax.device_get(flag.detail))
