"""Reads the configuration of the project that the process runs in; every value knows its source.

Values come from the environment (`PLUGRAD_DEVICE`, `PLUGRAD_BACKEND`) and from the nearest
`plugrad.toml` or `[tool.plugrad]` in a `pyproject.toml`, upward from the working directory:

    backend = "cuda"        # a device type
    device = "cuda:1"       # or one device of it
    plugins = ["profiler"]  # loaded at the first use, for those that only watch
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plugrad.device import as_device

ENVIRONMENT: Final = {"device": "PLUGRAD_DEVICE", "backend": "PLUGRAD_BACKEND"}
KEYS: Final = ("backend", "device", "plugins")


class ConfigError(RuntimeError):
    """The configuration cannot be used; the message names the file or variable, and the key."""


@dataclass(frozen=True)
class Setting:
    """A value and where it came from, in words that complete 'chosen by ...'."""

    value: str
    source: str


@dataclass(frozen=True)
class Config:
    """What is configured. The environment counts before the file.

    Attributes:
        environment: settings from environment variables.
        from_file: settings from the file.
        plugins: names of plugins to load at the first use.
        file: the file that was read, or None.
    """

    environment: Mapping[str, Setting] = field(default_factory=dict)
    from_file: Mapping[str, Setting] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    file: Path | None = None

    def device(self) -> Setting | None:
        """The configured default device, or None if none is configured."""
        for layer in (self.environment, self.from_file):
            chosen = _device_of(layer)
            if chosen is not None:
                return chosen
        return None


def load_config(start: Path | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Read the environment and the nearest file upward from `start`, the working directory.

    Raises:
        ConfigError: a file is no valid TOML, a key is unknown, or a value cannot be used.
    """
    variables = os.environ if environ is None else environ
    environment: dict[str, Setting] = {}
    for key, variable in ENVIRONMENT.items():
        if variables.get(variable):
            source = f"{variable} in the environment"
            environment[key] = _checked_setting(key, variables[variable], source)
    file, table = _nearest_table(start)
    if file is None:
        return Config(environment)
    from_file: dict[str, Setting] = {}
    plugins: tuple[str, ...] = ()
    for key, value in table.items():
        if key not in KEYS:
            raise ConfigError(f"{file}: unknown key {key!r}; {_nearest_key(key)}")
        if key == "plugins":
            plugins = _checked_names(value, file)
        else:
            from_file[key] = _checked_setting(key, value, f"'{key}' in {file}")
    return Config(environment, from_file, plugins, file)


def _device_of(layer: Mapping[str, Setting]) -> Setting | None:
    device, backend = layer.get("device"), layer.get("backend")
    if device is None or backend is None:
        return device or backend
    if as_device(device.value).type != backend.value:
        raise ConfigError(
            f"{device.source} is {device.value!r}, but {backend.source} is {backend.value!r}: "
            "set one of them, or let both name the same backend"
        )
    return device


def _nearest_key(key: str) -> str:
    import difflib  # only errors need it

    close = difflib.get_close_matches(key, KEYS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(KEYS)}"


def _checked_setting(key: str, value: object, source: str) -> Setting:
    if not isinstance(value, str):
        raise ConfigError(f"{source} must be a string, got {value!r} ({type(value).__name__})")
    if key == "backend":
        if not value.isidentifier():
            raise ConfigError(
                f"{source} must be the name of a backend such as 'cpu' or 'cuda', got {value!r}; "
                "use 'device' for a name with an index"
            )
    else:
        try:
            as_device(value)
        except RuntimeError as error:
            raise ConfigError(f"{source}: {error}") from None
    return Setting(value, source)


def _checked_names(value: object, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"'plugins' in {file} must be a list of strings, got {value!r}")
    return tuple(value)


def _nearest_table(start: Path | None) -> tuple[Path | None, Mapping[str, object]]:
    """The nearest file that configures plugrad, and its settings."""
    try:
        here = (start or Path.cwd()).resolve()
    except FileNotFoundError:  # the working directory was removed
        return None, {}
    for folder in (here, *here.parents):
        own = folder / "plugrad.toml"
        if own.is_file():
            return own, _parse(own)
        project = folder / "pyproject.toml"
        # Most projects do not configure plugrad: they need not be parsed, nor be valid.
        if project.is_file() and b"plugrad" in project.read_bytes():
            tool = _parse(project).get("tool")
            table = tool.get("plugrad") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                return project, table
    return None, {}


def _parse(file: Path) -> Mapping[str, object]:
    import tomllib  # most processes find no file, and need no parser

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
