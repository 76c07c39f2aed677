"""Finds the modules of the compiled core: all are in one shared library beside the package.

Without that library the core is interpreted, and Python finds its modules by itself.
"""

from __future__ import annotations

# Interpreted: it finds the compiled modules.
import os
import sys
from collections.abc import Sequence
from importlib._bootstrap import module_from_spec  # importlib.util is more than we need
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

NAME = "plugrad__mypyc"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What the paths of all modules begin with.
START = os.path.join(FOLDER, "")


def load() -> ModuleType | None:
    """The library beside the package; None if there is none."""
    if (loaded := sys.modules.get(NAME)) is not None:
        return loaded
    spec = PathFinder.find_spec(NAME, [FOLDER])
    if spec is None or spec.loader is None:
        return None
    library = module_from_spec(spec)
    sys.modules[NAME] = library
    spec.loader.exec_module(library)
    return library


class Loader(SourceFileLoader):
    """Loads one module from the library; finds its source like any other loader."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        sys.modules[NAME] = library  # mypyc's code expects it
        module: ModuleType = library.create(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the library has run the module when it created it."""


class Finder:
    """Finds the package's modules; Python calls it before it looks for files."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("plugrad."):
            return None
        if hasattr(library, f"init_{mangled(name)}"):
            return specification(name, os.path.isdir(stem(name)))
        return interpreted(name)


def mangled(name: str) -> str:
    """A module's name as a part of C names."""
    return name.replace(".", "___")


def stem(name: str) -> str:
    """The path of a package's folder, or of a module's source without its suffix."""
    return START + name.replace(".", os.sep)


def source_of(name: str, is_package: bool) -> str:
    """The path of a module's source."""
    return f"{stem(name)}{os.sep}__init__.py" if is_package else f"{stem(name)}.py"


def specification(
    name: str, is_package: bool, loader: type[SourceFileLoader] = Loader
) -> ModuleSpec:
    """What Python keeps of a module.

    The library is the file of a module in it. A package's is its source, since programs look for
    data beside it.
    """
    source = source_of(name, is_package)
    file = library.__file__ if loader is Loader and not is_package else source
    spec = ModuleSpec(name, loader(name, source), origin=file, is_package=is_package)
    spec.has_location = True
    if is_package:
        spec.submodule_search_locations = [stem(name)]
    return spec


def interpreted(name: str) -> ModuleSpec | None:
    """What Python finds of a module that is not in the library, where it would list its folder."""
    for is_package in (False, True):
        if os.path.isfile(source_of(name, is_package)):
            return specification(name, is_package, SourceFileLoader)
    return None


def describe(module: ModuleType, name: str, is_package: bool) -> None:
    """Set the attributes of a new module that Python does not set; the library calls this."""
    spec = specification(name, is_package)
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__package__ = spec.parent
    module.__file__ = spec.origin
    if is_package:
        module.__path__ = spec.submodule_search_locations or []


library: Any = load()
if library is not None:
    sys.meta_path.insert(0, Finder)
