"""Activates a backend: finds it, configures it, and gives it kernels."""

from __future__ import annotations

from plugrad.dispatch.backends.active import ActiveBackend, activate_backend, active_backends
from plugrad.dispatch.backends.backend import Backend
from plugrad.plugins import selection
from plugrad.plugins.config import threads
from plugrad.plugins.config.current import current_config
from plugrad.plugins.config.keys import NO_FALLBACK, ConfigError
from plugrad.plugins.loading.exclusive import Circle, run_exclusively
from plugrad.plugins.loading.messages import nearest
from plugrad.plugins.loading.process import get_manager


def load_backend(name: str) -> Backend:
    """The backend of a device type, active; one thread activates it, others wait.

    Raises:
        PluginError, BackendNotFoundError, ConfigError: it is not available; the message says why.
    """
    found: list[Backend] = []

    def work() -> None:
        backend = get_manager().backend(name, selection.source_of(name))
        activate_backend(backend)
        found.append(backend)

    try:
        run_exclusively(f"backend {name}", work)
    except Circle:
        work()
    if not found:  # another thread did it
        for active in active_backends():
            if active.name == name:
                return active.backend
        work()
    return found[0]


def configure(backend: Backend) -> None:
    """Pass a backend its options: the configured ones, over its own defaults.

    Raises:
        ConfigError: it has no option of that name, or cannot use the value.
    """
    given = current_config().options(backend.name)
    defaults = backend.options()
    takes_any = not defaults and type(backend).configure is not Backend.configure
    for option, setting in given.items():
        if option not in defaults and not takes_any:
            close = nearest(option, [*defaults, "fallback"])
            hint = f"did you mean {close!r}?" if close else f"it has {_listed(list(defaults))}"
            raise ConfigError(
                f"{setting.source}: backend {backend.name!r} has no option {option!r}; {hint}"
            )
    values = {**defaults, **{option: setting.value for option, setting in given.items()}}
    try:
        backend.configure(values)
    except (TypeError, ValueError) as error:
        sources = ", ".join(setting.source for setting in given.values()) or "its defaults"
        raise ConfigError(
            f"backend {backend.name!r} cannot use its options (from {sources}): {error}"
        ) from error


def complete(active: ActiveBackend) -> None:
    """Give a backend its configured fallback and threads, and the kernels that plugins provide for
    it."""
    _set_fallback(active)
    threads.apply(active)
    get_manager().complete(active)


def configuration_changed() -> None:
    """Let what depends on the configuration follow it."""
    selection.forget_choice()
    for active in active_backends():
        _set_fallback(active)
        threads.apply(active)
    get_manager().configuration_changed()


def _set_fallback(active: ActiveBackend) -> None:
    setting = current_config().fallback(active.name)
    wanted = active.backend.fallback if setting is None else setting.value
    active.set_fallback("" if wanted in (None, NO_FALLBACK) else str(wanted))


def _listed(options: list[str]) -> str:
    return f"the options {', '.join(options)}" if options else "no options"
