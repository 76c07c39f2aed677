"""The tables: what each of PyTorch's modules contains here (layout.toml), and the names that
PyTorch itself has (names.json and operators.json, written by tools/torch_names.py)."""

from __future__ import annotations

import functools
import json
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

# The release of PyTorch that plugrad follows in names and behaviour.
TORCH_VERSION: Final = "2.13.0"


@dataclass(frozen=True)
class Layout:
    """What one module of PyTorch contains; a name comes from the first part that has it.

    Attributes:
        own: a module of `plugrad_as_torch.own`, for names that need code.
        sources: modules of plugrad, or of others.
        aliases: other names, and what the sources call it.
        values: constants, which programs may set.
        answers: functions that always return the same value.
        nothing: functions that do nothing.
        same: functions and decorators that return their argument.
        empty: classes without instances.
        later: functions that can be imported, but not called yet.
        set_in: a module of plugrad. If a program replaces a function here, it is replaced there
            too, because plugrad's layers call it from there.
        listed: whether programs read the module's `__dict__`, which then has all names.
    """

    own: str = ""
    sources: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    nothing: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    set_in: str = ""
    listed: bool = False

    def names(self) -> set[str]:
        """The names that the table itself has."""
        lists = (self.nothing, self.same, self.empty, self.later)
        return {*self.values, *self.answers, *(name for names in lists for name in names)}


@functools.cache
def _table() -> dict[str, Any]:
    text = (files("plugrad_as_torch") / "layout.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def layouts() -> dict[str, Layout]:
    """By the module's name, such as `torch.nn.functional`."""
    return {
        name: Layout(**{key: _frozen(value) for key, value in entry.items()})
        for name, entry in _table()["modules"].items()
    }


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def instead(name: str) -> str:
    """What to use in place of a name that is missing, or nothing."""
    table: dict[str, str] = _table()["instead"]
    while name:
        if name in table:
            return table[name]
        name = name.rpartition(".")[0]
    return ""


@functools.cache
def torch_names() -> dict[str, frozenset[str]]:
    """PyTorch's public names by module; `torch.Tensor` counts as a module."""
    text = (files("plugrad_as_torch") / "names.json").read_text(encoding="utf-8")
    return {module: frozenset(names.split()) for module, names in json.loads(text).items()}


@functools.cache
def torch_operators() -> dict[str, frozenset[str]]:
    """The operators that PyTorch has in `torch.ops.aten`, and the overloads of each."""
    text = (files("plugrad_as_torch") / "operators.json").read_text(encoding="utf-8")
    return {name: frozenset(overloads.split()) for name, overloads in json.loads(text).items()}


@functools.cache
def all_torch_names() -> frozenset[str]:
    """The public names of all modules of PyTorch together."""
    return frozenset().union(*torch_names().values())
