"""The keys of the configuration, and the values that each may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from plugrad.device import as_device

# The words that mean no fallback.
NO_FALLBACK: Final = "none"


class ConfigError(RuntimeError):
    """The configuration cannot be used; the message names the file or variable, and the key."""


@dataclass(frozen=True)
class Setting:
    """A value and its source, in words that complete 'chosen by ...'.

    Attributes:
        value: a string, or a tuple of strings; under ``backends.<name>.`` whatever was written.
        source: the variable, or the key and the file.
        layer: "code", "environment", "file" or "default".

    >>> import plugrad
    >>> with plugrad.config.set(device="cpu"):
    ...     setting = plugrad.config.current_config().all_settings("device")[0]
    >>> setting.value, setting.source, setting.layer
    ('cpu', "plugrad.config.set(device='cpu')", 'code')
    """

    value: object
    source: str
    layer: str = field(default="", compare=False)


@dataclass(frozen=True)
class Key:
    """A key of plugrad itself.

    Attributes:
        kind: "device", "backend", "names" (a list of strings), "fallback", "word" (a string that
            a backend understands) or "count" (an integer from 1 on).
        default: the value if nothing is configured.
        doc: its purpose.
    """

    name: str
    kind: str
    default: object
    doc: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"PLUGRAD_{self.name.upper()}"


KEYS: Final = {
    key.name: key
    for key in (
        Key("device", "device", "", "the device on which tensors are made"),
        Key("backend", "backend", "cpu", "or only its type"),
        Key("plugins", "names", (), "plugins that are loaded at the first use"),
        Key("disable", "names", (), "plugins or distributions that are not used"),
        Key("prefer", "names", (), "plugins or distributions that win conflicts"),
        Key("fallback", "fallback", NO_FALLBACK, "runs operators that a backend lacks"),
        Key("cpu_capability", "word", "", "processor features that kernels may use, such as avx2"),
        Key("num_threads", "count", "", "threads of the processor for one operator"),
    )
}

BACKENDS: Final = "backends"
# The package whose kernel computes an operator on a backend: "cpu.gelu" = "plugrad-fast".
KERNELS: Final = "kernels"
KERNELS_VARIABLE: Final = "PLUGRAD_KERNELS"


# Nested tables replace the dots of a name; deeper nesting is not a name.
_MOST_DOTS: Final = 8
_LONGEST_SHOWN: Final = 200


def shown(value: object) -> str:
    """A value in a message: cut if it is long, its type if Python cannot write it at all."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        text = "a value"
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[:_LONGEST_SHOWN]}..."
    return f"{text} ({type(value).__name__})"


def flattened(table: Mapping[str, object], where: str) -> dict[str, object]:
    """A table's values by key, with ``[backends.foo]`` under ``backends.foo.<option>``.

    Raises:
        ConfigError: a key is unknown, or is not a table where one is required.
    """
    flat: dict[str, object] = {}
    for key, value in table.items():
        if not isinstance(key, str):
            raise ConfigError(f"{where}: keys must be strings, got {shown(key)}")
        if key == BACKENDS:
            flat.update(_of_backends(value, where))
        elif key.startswith(BACKENDS + "."):
            _check_option(key, where)
            flat[key] = value
        elif key == KERNELS or key.startswith(KERNELS + "."):
            flat.update(_of_kernels(key, value, where))
        elif key not in KEYS:
            known = [*KEYS, BACKENDS, KERNELS]
            raise ConfigError(f"{where}: unknown key {key!r}; {nearest(key, known)}")
        elif key == "backend" and isinstance(value, Mapping):
            raise ConfigError(
                f"{where}: 'backend' names one backend; options of a backend are in the table "
                "[backends.<name>]"
            )
        else:
            flat[key] = value
    return flat


def checked(key: str, value: object, source: str, layer: str) -> Setting:
    """A setting for a key of `flattened`; ConfigError if the value cannot be used."""
    known = KEYS.get(key)
    kind = known.kind if known else "fallback" if key.endswith(".fallback") else "option"
    if key.startswith(KERNELS + "."):
        return Setting(_package(value, source), source, layer)
    if kind == "names":
        return Setting(_names(value, source), source, layer)
    if kind == "option":
        return Setting(value, source, layer)
    if kind == "count":
        return Setting(_count(value, source), source, layer)
    if kind == "fallback" and value is None:
        return Setting(NO_FALLBACK, source, layer)
    if not isinstance(value, str):
        raise ConfigError(f"{source} must be a string, got {shown(value)}")
    if kind == "word":
        return Setting(value, source, layer)
    if kind == "device":
        try:
            as_device(value)
        except RuntimeError as error:
            raise ConfigError(f"{source}: {error}") from None
    elif not value.isidentifier():
        hint = "; use 'device' for a name with an index" if kind == "backend" else ""
        raise ConfigError(
            f"{source} must be the name of a backend such as 'cpu' or 'cuda', got {value!r}{hint}"
        )
    return Setting(value, source, layer)


def from_text(key: Key, text: str) -> object:
    """What a variable's text means: names are separated by commas, counts are digits."""
    if key.kind == "count" and text.strip().isdecimal():
        return int(text)
    if key.kind != "names":
        return text
    return [name.strip() for name in text.split(",") if name.strip()]


def kernels_from_text(text: str) -> dict[str, object]:
    """What `PLUGRAD_KERNELS` means: ``cpu.gelu=plugrad-fast``, several separated by commas.

    Raises:
        ConfigError: a part has no equals sign, or no operator.
    """
    where = f"{KERNELS_VARIABLE} in the environment"
    flat: dict[str, object] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            continue
        if not equals:
            raise ConfigError(
                f"{where} must be a list such as 'cpu.gelu=plugrad-fast,cpu.exp=plugrad-fast', got "
                f"{part.strip()!r}"
            )
        flat.update(_of_kernels(f"{KERNELS}.{key}", value, where))
    return flat


def nearest(name: str, valid: Iterable[str], cutoff: float = 0.6) -> str:
    """A hint for a name that is not valid."""
    import difflib  # only errors need it

    known = list(valid)
    close = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(known)}"


def _of_backends(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: 'backends' must be a table, such as [backends.cpu]")
    flat: dict[str, object] = {}
    for name, options in value.items():
        if not isinstance(options, Mapping):
            raise ConfigError(
                f"{where}: 'backends.{name}' must be a table of options, [backends.{name}], "
                f"got {shown(options)}"
            )
        for option, given in options.items():
            if not isinstance(name, str) or not isinstance(option, str):
                wrong = option if isinstance(name, str) else name
                raise ConfigError(f"{where}: keys must be strings, got {shown(wrong)}")
            key = f"{BACKENDS}.{name}.{option}"
            _check_option(key, where)
            flat[key] = given
    return flat


def _of_kernels(key: str, value: object, where: str) -> dict[str, object]:
    """Choices of kernels by their full keys; nested tables may replace the dots of a name."""
    if isinstance(value, Mapping) and key.count(".") < _MOST_DOTS:
        flat: dict[str, object] = {}
        for part, given in value.items():
            flat.update(_of_kernels(f"{key}.{part}", given, where))
        return flat
    _, _, rest = key.partition(".")
    backend, dot, operator = rest.partition(".")
    operator = operator.removeprefix("plugrad::")
    if not dot or not backend.isidentifier() or not operator:
        shown = f"'{KERNELS}' must be a table" if not rest else f"{key!r} must have the form"
        raise ConfigError(
            f"{where}: {shown}{'' if rest else ' of'} '{KERNELS}.<backend>.<operator>', such as "
            f'"cpu.gelu" = "plugrad-fast" under [{KERNELS}]'
        )
    return {f"{KERNELS}.{backend}.{operator}": value}


def _package(value: object, source: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"{source} must be the name of a plugin or distribution such as 'plugrad-fast', got "
            f"{shown(value)}"
        )
    return value


def _count(value: object, source: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{source} must be an integer from 1 on, got {shown(value)}")
    return value


def _check_option(key: str, where: str) -> None:
    parts = key.split(".")
    if len(parts) != 3 or not parts[1].isidentifier() or not parts[2]:
        raise ConfigError(
            f"{where}: {key!r} must have the form 'backends.<name>.<option>', with the name of a "
            "backend such as 'cpu'"
        )


def _names(value: object, source: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{source} must be a list of strings, got {shown(value)}")
    return tuple(value)
