"""Finds cases: in the tables of plugrad's operators, in plugins, and among registered ones."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterable
from typing import Final

from plugrad.dispatch.plugin_hooks import note
from plugrad.errors import PluginError
from plugrad.plugins import get_manager
from plugrad.plugins.cases import OpCase
from plugrad.testing.cases import tables

# The modules of `plugrad.testing.cases.tables` and its folders, each with a list CASES.
_MODULES: Final = {
    module.name.rpartition(".")[2]: module.name
    for module in pkgutil.walk_packages(tables.__path__, f"{tables.__name__}.")
    if not module.ispkg
}
FAMILIES: Final = tuple(_MODULES)

_registered: Final[list[OpCase]] = []


class _Added:
    """Cases that `register` added; they go with the plugin that did so, if one did."""

    def __init__(self, cases: list[OpCase]) -> None:
        self.cases = cases
        self.is_removed = False

    def remove(self) -> None:
        kept = list(_registered)
        for case in self.cases:
            for index, known in enumerate(kept):
                if known is case:
                    del kept[index]
                    break
        _registered[:] = kept
        # At last: who is interrupted finds that they are not removed, and does it again.
        self.is_removed = True


def register(*cases: OpCase) -> Callable[[], None]:
    """Add cases, until the function that is returned is called.

    A plugin implements the hook `plugrad_cases` instead.

    Raises:
        TypeError: something else than an `OpCase` was given.

    >>> from plugrad.testing.cases import OpCase, OpSample, T, cases_of, register
    >>> remove = register(OpCase("geometry::area", [OpSample((T((3,)),))]))
    >>> [case.op for case in cases_of("geometry::area")]
    ['geometry::area']
    >>> remove()
    """
    added = _Added([_checked(case, "register()") for case in cases])
    note(added)
    _registered.extend(added.cases)
    return added.remove


def core_cases() -> list[OpCase]:
    """The cases of plugrad's own operators."""
    return [case for family in FAMILIES for case in family_cases(family)]


def family_cases(family: str) -> list[OpCase]:
    """The cases of one module of `plugrad.testing.cases.tables`."""
    module = importlib.import_module(_MODULES[family])
    return list(module.CASES)


def plugin_cases() -> list[OpCase]:
    """The cases that installed plugins provide; warns of plugins with unusable cases."""
    manager = get_manager()
    manager.load_all()
    found: list[OpCase] = []
    for implementation in manager.hook.plugrad_cases.get_hookimpls():
        source = f"plugin {implementation.plugin_name!r}, plugrad_cases()"
        try:
            found += _gathered(implementation.function(), source)
        except Exception as error:
            warnings.warn(f"{source}: {type(error).__name__}: {error}", stacklevel=2)
    return found


def all_cases() -> list[OpCase]:
    """The cases of plugrad's own operators, of installed plugins, and those registered."""
    return [*core_cases(), *plugin_cases(), *_registered]


def cases_of(op: str) -> list[OpCase]:
    """The cases of one operator: "mul", "plugrad::mul.Tensor", "Tensor.mul", "special::erfcx".

    An overload counts for nothing: cases are about functions, which pick the overload by their
    arguments.

    >>> from plugrad.testing.cases import cases_of
    >>> sorted({case.op for case in cases_of("mul.Tensor")})
    ['mul']
    """
    return [case for case in all_cases() if _names(case) & {_base_name(op), op}]


def _names(case: OpCase) -> set[str]:
    """The names by which a case is found."""
    names = {case.op, _base_name(case.op)}
    if case.inplace is not None:
        names.add(case.inplace)
    return names


def _base_name(op: str) -> str:
    """ "mul" for "plugrad::mul.Tensor", "Tensor.mul" and "nn.functional.mul"."""
    if "::" in op:
        namespace, _, name = op.partition("::")
        name = name.partition(".")[0]
        return name if namespace == "plugrad" else f"{namespace}::{name}"
    for prefix in ("Tensor.", "nn.functional.", "ops."):
        if op.startswith(prefix):
            return op.removeprefix(prefix)
    return op if op.startswith("linalg.") else op.partition(".")[0]


def _gathered(items: object, source: str) -> Iterable[OpCase]:
    """The cases in what a hook returned: cases, and "module:attribute" of lists of them."""
    if isinstance(items, (str, OpCase)):
        items = [items]
    if not isinstance(items, Iterable):
        raise PluginError(f"must return a list, got {type(items).__name__}")
    for item in items:
        if isinstance(item, str):
            yield from _imported(item)
        else:
            yield _checked(item, source)


def _imported(target: str) -> Iterable[OpCase]:
    module, separator, attribute = target.partition(":")
    if not separator:
        raise PluginError(f"expected 'module:attribute', got {target!r}")
    found = getattr(importlib.import_module(module), attribute)
    return _gathered(found() if callable(found) else found, target)


def _checked(case: object, source: str) -> OpCase:
    if not isinstance(case, OpCase):
        raise TypeError(f"{source}: expected an OpCase, got {type(case).__name__}")
    return case
