"""Makes namespaces of plugins importable: `plugrad.nn`, and `import plugrad.nn.functional`.

A namespace is a module of the plugin under a second name; both names give the same module object.
"""

from __future__ import annotations

import functools
import importlib
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from plugrad.plugins.loading.exclusive import WORK_PREFIX, find_work
from plugrad.plugins.loading.process import get_manager
from plugrad.plugins.loading.published import PUBLISHED, distribution_of

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # the import system only needs the methods

_PREFIX: Final = "plugrad."

# Names that programs use even if no plugin provides them: attribute of plugrad -> our module.
STAND_INS: Final = {"cuda": "plugrad._torch_names.no_cuda"}


def load_namespace(name: str) -> Any:
    """The module, or the object in a module, that a plugin claims as ``plugrad.<name>``.

    Raises:
        ModuleNotFoundError: a known distribution provides it, and is not installed.
        PluginError: the plugin that claims it cannot be used.
        AttributeError: no plugin claims it.

    >>> from plugrad.plugins import load_namespace
    >>> load_namespace("nn").__name__
    'plugrad_nn.nn'
    """
    if not isinstance(name, str):
        raise TypeError(f"load_namespace(): name must be str, not {type(name).__name__}")
    claimed = _claimed(name)
    if claimed is None:
        raise _unknown(name)
    module, _, attribute = claimed.partition(":")
    if attribute:
        return getattr(importlib.import_module(module), attribute)
    return importlib.import_module(_PREFIX + name)


def claimed_names() -> set[str]:
    """Names that plugins and their substitutes add to plugrad, as far as known without importing
    unused plugins; for `dir()`.

    >>> from plugrad.plugins import claimed_names
    >>> "nn" in claimed_names()
    True
    """
    plugins = get_manager().discovered()
    names = set(STAND_INS)
    for name, owner in PUBLISHED.items():
        if owner in plugins and plugins[owner].status in ("loaded", "not loaded"):
            names.add(name)
    for plugin in plugins.values():
        if plugin.is_usable:
            names.update(plugin.namespaces)
    return names


def _unknown(name: str) -> AttributeError:
    """The error about a name that plugrad does not have; it suggests similar names."""
    face = sys.modules["plugrad"]
    # Programs test whether private names exist; they are not misspellings.
    close = "" if name.startswith("_") else _close_to(name, len(vars(face)))
    hint = f". Did you mean: {close!r}?" if close else ""
    return AttributeError(f"module 'plugrad' has no attribute {name!r}{hint}", name=name, obj=face)


@functools.lru_cache(maxsize=256)
def _close_to(name: str, known: int) -> str:
    """Similar names in plugrad, which has `known` names; cached, because programs probe the same
    names repeatedly."""
    from plugrad.plugins.loading.messages import nearest

    return nearest(name, [*dir(sys.modules["plugrad"]), *PUBLISHED])


def _claimed(name: str) -> str | None:
    """``module`` or ``module:attribute`` that a plugin claims a name for."""
    # Tools probe modules for private names; no plugin is imported for those.
    if name.startswith("_"):
        return None
    claimed = get_manager().namespace(name)
    if claimed is None and name in PUBLISHED:
        distribution = distribution_of(PUBLISHED[name])
        why = f"which is not installed: pip install {distribution}"
        plugin = get_manager().discovered().get(PUBLISHED[name])
        if plugin is not None and plugin.status in ("disabled", "unloaded"):
            why = f"whose plugin is {plugin.status}" + (
                f" by {plugin.disabled}" if plugin.disabled else ""
            )
        raise ModuleNotFoundError(
            f"plugrad.{name} is part of {distribution}, {why}", name=_PREFIX + name
        )
    return STAND_INS.get(name) if claimed is None else claimed


class _NamespaceFinder:
    """Finds ``plugrad.<name>``. It is the last finder, for names without a file in plugrad."""

    @staticmethod
    def find_spec(fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != "plugrad":
            return None
        real = _claimed(name)
        if real is None or ":" in real:
            return None
        return _alias(fullname, real)


class _SubmoduleFinder:
    """Finds ``plugrad.<name>.<submodule>``, and work that runs as an import. It is the first
    finder; otherwise the parent's path would find the submodule's file and run it a second time as
    another module."""

    @staticmethod
    def find_spec(fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            if fullname.startswith(WORK_PREFIX):
                return find_work(fullname)
            return None
        parent_name, _, name = fullname.rpartition(".")
        parent = sys.modules.get(parent_name)
        if parent is None or parent.__name__ == parent_name:
            return None
        real = f"{parent.__name__}.{name}"
        from importlib.util import find_spec

        return None if find_spec(real) is None else _alias(fullname, real)


def _alias(fullname: str, real: str) -> ModuleSpec:
    """The spec of a second name. It shows whether that is a package, so `python -m` finds what to
    run: its `__main__` or the module itself."""
    from importlib.util import find_spec

    try:
        spec = find_spec(real)
    except ValueError:  # a module that was not imported from a file has none
        spec = None
    is_package = spec is not None and spec.submodule_search_locations is not None
    return ModuleSpec(fullname, _AliasLoader(real), is_package=is_package)


class _AliasLoader(Loader):
    """Loads an alias as the module that it refers to."""

    def __init__(self, real: str) -> None:
        self._real = real
        self._real_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._real)
        self._real_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module has run under its own name; the import system put the alias' spec on it.
        module.__spec__ = self._real_spec

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m` runs under the alias: the code of the real module."""
        from importlib.util import find_spec

        spec = find_spec(self._real)
        code: CodeType | None = spec.loader.get_code(self._real)  # type: ignore[union-attr]
        return code


def install() -> None:
    """Add the plugins to the import system."""
    if _NamespaceFinder not in sys.meta_path:
        sys.meta_path.insert(0, _SubmoduleFinder)
        sys.meta_path.append(_NamespaceFinder)
