"""The number of threads that operators may use on the processor, and its propagation to
backends."""

from __future__ import annotations

from typing import Final

from plugrad.dispatch.backends.active import ActiveBackend, active_backends
from plugrad.plugins.config.current import current_config


class _Said:
    """The number given to `allow`, and the numbers that backends used before."""

    def __init__(self) -> None:
        self.count: int | None = None
        self.before: dict[str, int] = {}


_said: Final = _Said()


def allow(count: int) -> None:
    """Let operators of all backends use this number of threads; overrides the configuration."""
    _said.count = count
    for active in active_backends():
        apply(active)


def apply(active: ActiveBackend) -> None:
    """Set a backend's number of threads to the requested or configured one, else to its former
    one."""
    count = _said.count
    if count is None:
        count = current_config().num_threads()
    backend, name = active.backend, active.name
    if count is None:
        count = _said.before.get(name)
        if count is None:
            return
    elif name not in _said.before:
        _said.before[name] = backend.num_threads()
    if backend.num_threads() != count:
        backend.set_num_threads(count)
