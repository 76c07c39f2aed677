"""Reads the configuration of the project that the process runs in; every value has its source.

Values come from code (`plugrad.config.set`), from the environment (`PLUGRAD_DEVICE` and the like)
and from the nearest `plugrad.toml` or `[tool.plugrad]` in a `pyproject.toml`, upward from the
working directory:

    backend = "cuda"         # a device type
    device = "cuda:1"        # or one device of it
    plugins = ["profiler"]   # loaded at the first use, for those that only watch
    disable = ["foo"]        # not used, as if they were not installed
    prefer = ["plugrad-bar"] # wins where two plugins claim the same
    fallback = "cpu"         # computes what a backend lacks
    cpu_capability = "avx2"  # processor features that kernels may use
    num_threads = 4          # of the processor, for one operator

    [backends.foo]           # handed to the backend
    threads = 4
    fallback = "none"        # this one is taken by plugrad

    [kernels]                # whose kernel computes one operator
    "cpu.gelu" = "plugrad-fast"
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plugrad.device import as_device
from plugrad.plugins.config.keys import (
    BACKENDS,
    KERNELS,
    KERNELS_VARIABLE,
    KEYS,
    ConfigError,
    Setting,
    checked,
    flattened,
    from_text,
    kernels_from_text,
    nearest,
)

# Variables that do not configure a process.
OTHER_VARIABLES: Final = (
    "PLUGRAD_SHOW_DISPATCH_TRACE",
    "PLUGRAD_FULL_TRACEBACK",
    "PLUGRAD_PURE",
    "PLUGRAD_TEST_CORE",
)

# How much alike a variable and one of ours must be, without the prefix, to be a slip of the pen.
_ALIKE: Final = 0.75

BUILT_IN: Final = "the built-in default"


@dataclass(frozen=True)
class Config:
    """The configuration. Code takes precedence over the environment, and that over the file.

    Attributes:
        environment: settings from environment variables.
        from_file: settings from the file, with ``[backends.foo]`` as ``backends.foo.<option>``.
        file: the file that was read, or None.
        from_code: settings made by `plugrad.config.set`, the newest first.

    >>> import plugrad
    >>> with plugrad.config.set(device="cpu", num_threads=2):
    ...     config = plugrad.config.current_config()
    >>> config.device().value, config.num_threads()
    ('cpu', 2)
    """

    environment: Mapping[str, Setting] = field(default_factory=dict)
    from_file: Mapping[str, Setting] = field(default_factory=dict)
    file: Path | None = None
    from_code: tuple[Mapping[str, Setting], ...] = ()

    @property
    def layers(self) -> Iterator[Mapping[str, Setting]]:
        """Settings by key, from the strongest to the weakest."""
        yield from self.from_code
        yield self.environment
        yield self.from_file

    def all_settings(self, key: str) -> list[Setting]:
        """The settings of a key, the effective one first; the default is the last."""
        said = [layer[key] for layer in self.layers if key in layer]
        if key in KEYS:
            said.append(Setting(KEYS[key].default, BUILT_IN, "default"))
        return said

    def names(self, key: str) -> tuple[str, ...]:
        """The value of `plugins`, `disable` or `prefer`."""
        value = self.all_settings(key)[0].value
        assert isinstance(value, tuple)
        return value

    @property
    def plugins(self) -> tuple[str, ...]:
        """Names of plugins to load at the first use."""
        return self.names("plugins")

    def device(self) -> Setting | None:
        """The configured default device, or None if none is configured."""
        for layer in self.layers:
            chosen = _device_of(layer)
            if chosen is not None:
                return chosen
        return None

    def fallback(self, backend: str) -> Setting | None:
        """The backend that computes operators that a backend lacks, or "none"; None if that is not
        configured.

        In each layer, a setting for the backend comes before a setting for all backends.
        """
        for layer in self.layers:
            found = layer.get(f"{BACKENDS}.{backend}.fallback") or layer.get("fallback")
            if found is not None:
                return found
        return None

    def num_threads(self) -> int | None:
        """How many threads of the processor one operator may use; None if it is not configured."""
        value = self.all_settings("num_threads")[0].value
        return value if isinstance(value, int) else None

    def options(self, backend: str) -> dict[str, Setting]:
        """The options of ``[backends.<backend>]``, without what plugrad takes itself."""
        start = f"{BACKENDS}.{backend}."
        options: dict[str, Setting] = {}
        for layer in self.layers:
            for key, setting in layer.items():
                if key.startswith(start) and key != start + "fallback":
                    options.setdefault(key.removeprefix(start), setting)
        return options

    def kernels(self, backend: str) -> dict[str, Setting]:
        """The packages chosen for kernels on a backend, by operator name."""
        start = f"{KERNELS}.{backend}."
        chosen: dict[str, Setting] = {}
        for layer in self.layers:
            for key, setting in layer.items():
                if key.startswith(start):
                    chosen.setdefault(key.removeprefix(start), setting)
        return chosen

    def configured_backends(self) -> dict[str, Setting]:
        """The backends that have options or chosen kernels, with one setting of each."""
        found: dict[str, Setting] = {}
        for layer in self.layers:
            for key, setting in layer.items():
                if key.startswith((BACKENDS + ".", KERNELS + ".")):
                    found.setdefault(key.split(".")[1], setting)
        return found

    def known_keys(self) -> list[str]:
        """Every key that has a value: the known ones, then the options of backends by name."""
        options = {key for layer in self.layers for key in layer if key not in KEYS}
        return [*KEYS, *sorted(options)]


def load_config(start: Path | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Read the environment and the nearest file upward from `start`, the working directory.

    Raises:
        ConfigError: a file is not a valid TOML, a key or variable is unknown, or a value cannot be
            used.
    """
    variables = os.environ if environ is None else environ
    environment: dict[str, Setting] = {}
    for key in KEYS.values():
        text = variables.get(key.variable)
        if text:
            source = f"{key.variable} in the environment"
            environment[key.name] = checked(key.name, from_text(key, text), source, "environment")
    for name, value in kernels_from_text(variables.get(KERNELS_VARIABLE, "")).items():
        source = f"{KERNELS_VARIABLE} in the environment"
        environment[name] = checked(name, value, source, "environment")
    _check_variables(variables)
    file, table = _nearest_table(start)
    from_file = {
        name: checked(name, value, f"'{name}' in {file}", "file")
        for name, value in flattened(table, str(file)).items()
    }
    return Config(environment, from_file, file)


def _check_variables(variables: Mapping[str, str]) -> None:
    """Variables of plugins are none of our business, but slips of the pen are."""
    known = [*(key.variable for key in KEYS.values()), KERNELS_VARIABLE, *OTHER_VARIABLES]
    for name in variables:
        if name.startswith("PLUGRAD_") and name not in known:
            ours = [other.removeprefix("PLUGRAD_") for other in known]
            hint = nearest(name.removeprefix("PLUGRAD_"), ours, _ALIKE)
            if hint.startswith("did you mean '"):
                hint = hint.replace("'", "'PLUGRAD_", 1)
                raise ConfigError(f"unknown variable {name!r} in the environment; {hint}")


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
        if project.is_file() and _mentions_plugrad(project):
            tool = _parse(project).get("tool")
            table = tool.get("plugrad") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                return project, table
    return None, {}


def _mentions_plugrad(file: Path) -> bool:
    try:
        return b"plugrad" in file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


def _parse(file: Path) -> Mapping[str, object]:
    import tomllib  # most processes find no file, and need no parser

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except RecursionError:
        raise ConfigError(f"{file} cannot be read: it is nested too deeply") from None
    except (ValueError, OSError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
