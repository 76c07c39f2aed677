"""Whether backward passes may use the threads of devices: `set_multithreading_enabled`."""

from __future__ import annotations

import functools
from typing import Any

from plugrad.dispatch.local_state import current_state


def is_multithreading_enabled() -> bool:
    """Whether backward, called from this thread, may use the threads of devices."""
    return current_state().multithreading


class set_multithreading_enabled:
    """Sets it to `mode`, at once; as a context manager or decorator it puts the old value back.

    Without them the calling thread runs every node, whatever its device. It concerns this thread
    only.

    Raises:
        TypeError: `mode` is no bool.

    >>> import plugrad
    >>> with plugrad.autograd.set_multithreading_enabled(False):
    ...     plugrad.autograd.is_multithreading_enabled()
    False
    """

    def __init__(self, mode: Any) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        state = current_state()
        self.prev: bool = state.multithreading
        self.mode: bool = mode
        state.multithreading = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        current_state().multithreading = self.prev

    def clone(self) -> Any:
        """Another one of the same mode, which it sets."""
        return set_multithreading_enabled(self.mode)

    def __call__(self, function: Any) -> Any:
        """Decorate a function: the mode holds while it runs, and no longer from here on."""
        current_state().multithreading = self.prev
        mode = self.mode

        @functools.wraps(function)
        def with_mode(*args: Any, **kwargs: Any) -> Any:
            with set_multithreading_enabled(mode):
                return function(*args, **kwargs)

        return with_mode
