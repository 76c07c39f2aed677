"""The configuration of this process: read once, and changed from code by `set`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.prepared_signature import PreparedSignature
from plugrad.dispatch.scope import Locked, Scope, SetAtOnce
from plugrad.plugins.config.keys import ConfigError, Setting, checked, flattened, nearest, shown
from plugrad.plugins.config.read import Config, load_config
from plugrad.plugins.config_hooks import tell_changed, tell_forgotten


class _Current:
    """What was read, and the settings of `set` in the order in which they were made."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.read: Config | None = None
        self.from_code: tuple[Mapping[str, Setting], ...] = ()


_current: Final = _Current()
hold_while_forking(_current.lock)


def current_config() -> Config:
    """The configuration that counts now; environment and file are read at the first use.

    Raises:
        ConfigError: environment or file cannot be used.

    >>> import plugrad
    >>> with plugrad.config.set(device="cpu"):
    ...     plugrad.config.current_config().device()
    Setting(value='cpu', source="plugrad.config.set(device='cpu')", layer='code')
    """
    read = _current.read
    if read is None:
        read = load_config()
        _current.read = read
    return replace(read, from_code=_current.from_code[::-1])


def forget() -> None:
    """Read environment and file again at the next use; values from `set` stay."""
    _current.read = None
    tell_forgotten()


class without_errors(Scope):
    """Context manager: environment and file that cannot be used count as empty; gives their
    error."""

    error: ConfigError | None = None

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        try:
            current_config()
        except ConfigError as error:
            self.error = error
            _current.read = Config()

    def restore(self, state: LocalState, before: Any) -> None:
        if self.error is not None:
            forget()

    def value(self) -> ConfigError | None:
        return self.error


def reset() -> None:
    """Undo every `set`, and read environment and file again at the next use.

    >>> import plugrad
    >>> _ = plugrad.config.set(prefer=["native"])
    >>> plugrad.config.reset()
    >>> plugrad.config.get("prefer") == ["native"]
    False
    """
    with Locked(_current.lock):
        _current.from_code = ()
    forget()


class set(SetAtOnce):  # a function to its users, such as `no_grad`
    """Configure the process from code; as a context manager, until the end of the block.

    It counts before the environment and the file, for all threads; of several, the newest counts.
    The device is used from then on. Options of a backend reach it when it becomes active, plugins
    are disabled or preferred when something is looked for.

    Args:
        settings: values by key, for keys that are not identifiers: ``"backends.foo.threads"``.
        **more: values by key; ``backends`` takes a mapping of mappings.

    Raises:
        ConfigError: a key is unknown, or a value cannot be used; nothing is set then.

    >>> import plugrad
    >>> with plugrad.config.set(device="cpu"):
    ...     plugrad.config.get("device")
    'cpu'
    """

    __signature__ = PreparedSignature()

    def prepare(self, settings: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        where = "plugrad.config.set()"
        if settings is not None and not isinstance(settings, Mapping):
            raise TypeError(f"{where}: settings must be a mapping, got {shown(settings)}")
        flat = flattened({**(settings or {}), **more}, where)
        self._layer = {
            key: checked(key, value, f"plugrad.config.set({key}={_written(value)})", "code")
            for key, value in flat.items()
        }
        Config(from_code=(self._layer,)).device()  # device and backend may contradict each other

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        with Locked(_current.lock):
            if all(layer is not self._layer for layer in _current.from_code):
                _current.from_code = (*_current.from_code, self._layer)
        tell_changed()

    def restore(self, state: LocalState, before: Any) -> None:
        with Locked(_current.lock):
            _current.from_code = tuple(
                [layer for layer in _current.from_code if layer is not self._layer]
            )
        tell_changed()

    def value(self) -> set:
        return self

    def __repr__(self) -> str:
        values = ", ".join(
            f"{key}={_written(setting.value)}" for key, setting in self._layer.items()
        )
        return f"plugrad.config.set({values})"


def _written(value: object) -> str:
    return shown(value).rpartition(" (")[0]


def setting(key: str) -> Setting:
    """The value of a key and its source.

    Raises:
        ConfigError: there is no such key, or no option of that name is set.

    >>> import plugrad
    >>> with plugrad.config.set(fallback="cpu"):
    ...     plugrad.config.setting("fallback").source
    "plugrad.config.set(fallback='cpu')"
    """
    if not isinstance(key, str):
        raise TypeError(f"plugrad.config: a key must be a string, got {shown(key)}")
    config = current_config()
    said = config.all_settings(key)
    if not said:
        raise ConfigError(
            f"plugrad.config: nothing is set for {key!r}; {nearest(key, config.known_keys())}"
        )
    return said[0]


def get(key: str) -> Any:
    """The value of a key: a string, or a tuple of strings; of a backend's option, what was written.

    Raises:
        ConfigError: there is no such key, or no option of that name is set.

    >>> import plugrad
    >>> with plugrad.config.set(num_threads=2):
    ...     plugrad.config.get("num_threads")
    2
    """
    return setting(key).value
