"""A backend's kernels by operator name, whichever form its author wrote them in."""

from __future__ import annotations

# Interpreted: it runs once per backend, and marks functions.
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final, TypeVar

from plugrad.errors import PluginError

_MARK: Final = "__plugrad_kernel__"
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType)

F = TypeVar("F", bound=Callable[..., Any])


def kernel(*names: str) -> Callable[[F], F]:
    """Mark a function or method as the kernel of the operators with these names.

    Without a name the function's own is meant.

    Raises:
        TypeError: a name is not a string, for example because the decorator was used without
            parentheses.

    >>> from plugrad.plugins import kernel, kernel_table
    >>> class Kernels:
    ...     @kernel()
    ...     def exp(self, a): ...
    ...     @kernel("max.dim", "min.dim")
    ...     def extremum(self, a, dim, keepdim): ...
    >>> sorted(kernel_table(Kernels))
    ['exp', 'max.dim', 'min.dim']
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"kernel(): expected operators' names, got {type(name).__name__}; write @kernel() "
                "for a function that has its operator's name"
            )

    def mark(function: F) -> F:
        setattr(function, _MARK, names or (function.__name__,))
        return function

    return mark


def kernel_table(source: object) -> dict[str, Callable[..., Any]]:
    """Kernels by operator name.

    Args:
        source: one of
            - a mapping from names to functions;
            - a module: its functions marked with `kernel`; if none is, every public function that
              is defined there (or listed in `__all__`), under its own name;
            - an object, or a class to be made one of, with methods marked with `kernel`;
            - a list of such sources; later ones take precedence.

    Raises:
        TypeError: it is none of these, or something in it cannot be called.

    >>> import numpy as np
    >>> from plugrad.plugins import kernel_table
    >>> sorted(kernel_table([{"exp": np.exp}, {"sin": np.sin}]))
    ['exp', 'sin']
    """
    if isinstance(source, Mapping):
        table = dict(source)
    elif isinstance(source, list | tuple):
        table = {}
        for part in source:
            table.update(kernel_table(part))
    elif isinstance(source, ModuleType):
        table = dict(_marked(source)) or dict(_public_functions(source))
    elif isinstance(source, str | bytes | int | float) or source is None:
        raise TypeError(
            "kernels must come as a mapping, a module, a class or an object with methods marked "
            f"by @kernel, or a list of these; got {type(source).__name__}"
        )
    else:
        table = dict(_marked(source() if isinstance(source, type) else source))
        if not table:
            shown = source.__name__ if isinstance(source, type) else type(source).__name__
            raise TypeError(f"{shown} has no method marked with @kernel")
    for name, function in table.items():
        if not isinstance(name, str):
            raise TypeError(f"a kernel's name must be a string, got {name!r}")
        if not callable(function):
            raise TypeError(
                f"the kernel for {name!r} must be callable, got {type(function).__name__}"
            )
    return table


def joined_tables(tables: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The union of named tables of kernels.

    Raises:
        RuntimeError: two define the same operator.

    >>> import numpy as np
    >>> from plugrad.plugins import joined_tables
    >>> sorted(joined_tables([("powers", {"exp": np.exp}), ("waves", {"sin": np.sin})]))
    ['exp', 'sin']
    """
    found: dict[str, Any] = {}
    given: Any = tables
    if not isinstance(given, Iterable):
        raise TypeError(f"joined_tables(): tables must be pairs, not {type(given).__name__}")
    for pair in given:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Mapping)):
            raise TypeError(f"joined_tables(): expected pairs of a name and a table, got {pair!r}")
        name, table = pair
        twice = found.keys() & table.keys()
        if twice:
            raise RuntimeError(f"{name} defines again: {', '.join(sorted(twice))}")
        found.update(table)
    return found


def package_kernels(package: str) -> dict[str, Callable[..., Any]]:
    """All kernels of a package: the union of the mappings `KERNELS` of its modules.

    Raises:
        RuntimeError: two of the modules define the same operator.

    >>> from plugrad.plugins import package_kernels
    >>> "exp" in package_kernels("plugrad_cpu.kernels")
    True
    """
    if not isinstance(package, str):
        raise TypeError(f"package_kernels(): package must be a name, not {type(package).__name__}")
    import pkgutil

    found = importlib.import_module(package)
    modules = [
        importlib.import_module(f"{package}.{info.name}")
        for info in pkgutil.iter_modules(found.__path__)
    ]
    return joined_tables((module.__name__, getattr(module, "KERNELS", {})) for module in modules)


def marked_kernels(owner: object) -> dict[str, Callable[..., Any]]:
    """The functions of a module, or the methods of an object, that `kernel` marked."""
    return dict(_marked(owner))


def check_names(names: Iterable[str], known: Iterable[str], whose: str) -> None:
    """PluginError if an operator of the core is misspelt; other namespaces may come later."""
    for text in unknown_names(names, known).values():
        raise PluginError(f"{whose} has {text}")


def unknown_names(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """The names of kernels without a core operator of that name, each with a message."""
    valid = set(known)
    found: dict[str, str] = {}
    for name in names:
        if "::" not in name and name not in valid:
            import difflib  # only errors need it

            close = difflib.get_close_matches(name, valid, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "`plugrad ops` lists them"
            found[name] = f"a kernel for {name!r}, but there is no operator of that name; {hint}"
    return found


def _marked(owner: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    # Looked up in namespaces, since a property would run if it were read.
    if isinstance(owner, ModuleType):
        attributes = dict(vars(owner))
    else:
        attributes = {}
        for cls in reversed(type(owner).__mro__):
            attributes.update(vars(cls))
    for attribute, found in attributes.items():
        function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        if isinstance(function, FunctionType):
            for name in getattr(function, _MARK, ()):
                yield name, getattr(owner, attribute)


def _public_functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    listed = getattr(module, "__all__", None)
    for name in vars(module) if listed is None else listed:
        value = getattr(module, name)
        own = isinstance(value, _FUNCTIONS) and value.__module__ == module.__name__
        if listed is not None or (own and name[0] != "_"):
            yield name, value
