"""Finds what a name of PyTorch means in plugrad, and explains where it has no meaning."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import plugrad
from plugrad_as_torch.layout import Layout, all_torch_names, instead, layouts, torch_names

_NOTHING: Final = object()
_WHERE: Final = (
    "docs/torch_names.md lists what is missing, and `plugrad check` what a program uses of it"
)


def has_module(module: str) -> bool:
    """Whether a module of PyTorch exists here, in whole or in part."""
    found = layouts().get(module)
    # A module is absent if everything in it needs modules that plugrad lacks so far.
    if found is None or found.own or found.names() or not found.sources:
        return found is not None
    return any(_module(source) is not None for source in found.sources)


def find(module: str, name: str) -> Any:
    """What a module of PyTorch has under a name, other than a module.

    Raises:
        AttributeError: nothing; the message says whether PyTorch has it.
    """
    found = _find(module, name)
    if found is _NOTHING:
        raise AttributeError(missing(module, name), name=name)
    return found


def lacks(name: str) -> str:
    """The first part of a dotted name of PyTorch that does not work here, such as `torch.nn.LSTM`
    of `torch.nn.LSTM.forward`; empty if all of it works. A name that can only be imported counts as
    missing."""
    module, *rest = name.split(".")
    for position, part in enumerate(rest):
        full = f"{module}.{part}"
        if has_module(full):
            module = full
            continue
        found = _find_working(module, part)
        if found is _NOTHING:
            return full
        after = rest[position + 1 :]
        if isinstance(found, type) and after and not hasattr(found, after[0]):
            return f"{full}.{after[0]}" if after[0] in torch_names().get(full, ()) else ""
        return ""
    return ""


def is_known(name: str) -> bool:
    """Whether the release of PyTorch that plugrad follows has a dotted name, as far as it is
    listed."""
    module, _, last = name.rpartition(".")
    return last in torch_names().get(module, ()) or name in torch_names()


def missing(module: str, name: str) -> str:
    """The message about a missing name."""
    full = f"{module}.{name}"
    if is_known(full) or instead(full):
        return not_yet(full)
    return f"module {module!r} has no attribute {name!r}"


def not_yet(full: str) -> str:
    """The message about a name that PyTorch has and plugrad does not."""
    use = instead(full)
    return f"{full} is not in plugrad yet{f': {use}' if use else ''}; {_WHERE}"


def no_module(full: str) -> str:
    """The message about a missing module."""
    if full in torch_names() or full in layouts() or instead(full):
        return f"No module named {full!r}: {not_yet(full)}"
    return f"No module named {full!r}: torch is plugrad in this process, which has no such module"


def file_of(module: str) -> str:
    """The file of the first module that a module of PyTorch is made from. Programs use its folder
    to distinguish the library's stack frames from their own."""
    layout = layouts()[module]
    parts = [_module(source) for source in layout.sources]
    if layout.own:
        parts.append(_own(layout))
    files = (getattr(part, "__file__", None) for part in [*parts, plugrad])
    return str(next(filter(None, files)))


def names_of(module: str) -> list[str]:
    """The names that a module of PyTorch has here, without modules; for `dir` and `import *`."""
    layout = layouts()[module]
    candidates = {*torch_names().get(module, ()), *layout.names()}
    if layout.own:
        candidates.update(_own(layout).__all__)
    return sorted(name for name in candidates if _find(module, name) is not _NOTHING)


def _find(module: str, name: str) -> Any:
    found = _find_working(module, name)
    layout = layouts().get(module)
    if found is not _NOTHING or layout is None:
        return found
    if name in layout.empty:
        return _empty_class(module, name)
    if name in layout.later:
        return _named(functools.partial(_refuse, f"{module}.{name}"), module, name)
    return _NOTHING


def _find_working(module: str, name: str) -> Any:
    layout = layouts().get(module)
    if layout is None:
        return _NOTHING
    if layout.own:
        own = _own(layout)
        if name in own.__all__:
            return getattr(own, name)
    in_source = layout.aliases.get(name, name)
    for number, source in enumerate(layout.sources):
        if name in layout.aliases or _is_offered(module, name, source, number == 0):
            found = _from_source(source, in_source)
            if found is not _NOTHING:
                return found
    return _from_table(module, layout, name)


def set_in_source(module: str, name: str, value: Any) -> None:
    """Also set a name where plugrad itself looks it up, if programs replace functions of that
    module."""
    layout = layouts().get(module)
    source = _module(layout.set_in) if layout is not None and layout.set_in else None
    if source is not None and callable(vars(source).get(name)):
        setattr(source, name, value)


def _own(layout: Layout) -> Any:
    return importlib.import_module(f"plugrad_as_torch.own.{layout.own}")


def _is_offered(module: str, name: str, source: str, is_first: bool) -> bool:
    """Whether a source is searched for a name that PyTorch has, or an internal one. Names that only
    plugrad has are left out, because programs test which names exist.

    The first source is searched for all names, because PyTorch's modules import from each other:
    for names that the source defines itself, not for names it imported. plugrad's `__all__` is for
    `import *` and leaves out names such as `bool`.
    """
    if name.startswith("_"):
        return not name.startswith("__")
    if source == "plugrad.ops":  # the namespaces of operators that the program itself defines
        return name != "plugrad"
    names = torch_names()
    if name in names.get(module, ()):
        return True
    if not (is_first or module not in names) or name not in all_torch_names():
        return False
    return source == "plugrad" or name in getattr(_module(source), "__all__", (name,))


def _from_source(source: str, name: str) -> Any:
    module = _module(source)
    if module is None:
        return _NOTHING
    try:
        found = getattr(module, name, _NOTHING)
    except ImportError:  # of a plugin that is not installed
        return _NOTHING
    return _NOTHING if isinstance(found, ModuleType) else found


@functools.cache
def _module(source: str) -> ModuleType | None:
    """A module that modules of PyTorch are made from, if it can be imported."""
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        # Either plugrad has no such module, or its plugin is not installed.
        if error.name is None or not f"{source}.".startswith(f"{error.name}."):
            raise
        return None


def _from_table(module: str, layout: Layout, name: str) -> Any:
    if name in layout.values:
        return layout.values[name]
    if name in layout.answers:
        return _named(functools.partial(_answer, layout.answers[name]), module, name)
    if name in layout.nothing:
        return _named(functools.partial(_answer, None), module, name)
    if name in layout.same:
        return _named(_same, module, name)
    return _NOTHING


def _named(function: Callable[..., Any], module: str, name: str) -> Callable[..., Any]:
    def named(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    named.__name__ = named.__qualname__ = name
    named.__module__ = module
    return named


def _answer(value: Any, *args: Any, **kwargs: Any) -> Any:
    return value


def _same(thing: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The argument; if called with options only, a decorator that returns its argument."""
    return thing if callable(thing) else lambda function: function


def _refuse(full: str, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(not_yet(full))


@functools.cache
def _empty_class(module: str, name: str) -> type:
    def refused(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(not_yet(f"{module}.{name}"))

    # Programs only name exceptions in `except`, where a missing class would itself be an error.
    bases = (Exception,) if name.endswith(("Error", "Exception")) else ()
    return type(name, bases, {"__module__": module, "__new__": refused})
