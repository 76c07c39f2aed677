"""Definitions and kernels without a `Library` at hand, as torch.library has them."""

from __future__ import annotations

from typing import Any, Final

from plugrad.dispatch import keys
from plugrad.dispatch.backend import backend_by_number
from plugrad.library.library import Library

# Libraries that module-level functions made live as long as the process.
_kept: Final[list[Library]] = []


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Define ``ns::name`` with a schema's parameters and returns, as torch.library.define does."""
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(f"define(): expected a name such as 'ns::name', got {qualname!r}")
    owner = Library(namespace, "FRAGMENT") if lib is None else lib
    owner.define(name + schema)
    _kept.append(owner)


def impl(qualname: str, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register a kernel for a dispatch key or for backends by name; may be a decorator."""
    namespace, separator, _ = qualname.partition("::")
    if not separator:
        raise ValueError(f"impl(): expected a name such as 'ns::name', got {qualname!r}")
    owner = Library(namespace, "IMPL") if lib is None else lib
    names = [types] if isinstance(types, str) else list(types)

    def register(function: Any) -> Any:
        for name in names:
            owner.impl(qualname, function, _key_name(name))
        _kept.append(owner)
        return function

    return register if func is None else register(func)


def _key_name(name: str) -> str:
    if name == "default":
        return "CompositeExplicitAutograd"
    number = keys.backend_number(name)
    active = None if number < 0 else backend_by_number(number)
    if active is None:
        return name
    return active.key_name
