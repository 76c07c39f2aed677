"""Names of new packages: which are valid, which are taken, and the names derived from one."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import keyword
import pkgutil
import re
import sys
from collections.abc import Iterable
from typing import Final

from plugrad.dispatch.backends.active import active_backends
from plugrad.dispatch.keys import all_keys
from plugrad.dispatch.operator import all_operators
from plugrad.plugins import get_manager
from plugrad.plugins.loading.published import PUBLISHED

# Device types that plugrad publishes or keeps for itself.
RESERVED_BACKENDS: Final = ("cpu", "cuda", "jax", "meta")
# So that no line of the templates gets too long: of a name, and of a distribution's.
LONGEST: Final = 30
LONGEST_DISTRIBUTION: Final = 40

_NAME: Final = re.compile(r"[a-z](_?[a-z0-9])*")
# The grammar of PyPA's name format.
_DISTRIBUTION: Final = re.compile(r"[A-Z0-9]([A-Z0-9._-]*[A-Z0-9])?", re.IGNORECASE)


class ScaffoldError(Exception):
    """A package cannot be written; the message says why and what to do."""


def normalized(distribution: str) -> str:
    """A distribution's name as PEP 503 spells it: ``Foo__Bar`` and ``foo.bar`` are ``foo-bar``."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def package_of(distribution: str) -> str:
    """The import package of a distribution: ``plugrad-foo`` has ``plugrad_foo``."""
    return normalized(distribution).replace("-", "_")


def class_prefix(name: str) -> str:
    """``demo_array`` as the beginning of a class' name: ``DemoArray``."""
    return "".join(part.capitalize() for part in name.split("_"))


def check_backend_name(name: str) -> None:
    """Raise unless ``device="name"`` can be a new backend."""
    _check_form("a backend's name", name)
    if name in RESERVED_BACKENDS:
        raise ScaffoldError(f"{name!r} is a backend of plugrad's own: choose another name")
    _check_plugin(name)
    if name in {active.name for active in active_backends()} | set(get_manager().backends()):
        raise ScaffoldError(f"a backend named {name!r} is installed already: choose another name")
    key = name.capitalize()
    if key in {known.name for known in all_keys()}:
        raise ScaffoldError(f"{name!r} would get the dispatch key {key}, which is taken")


def check_namespace(name: str) -> None:
    """Raise unless ``plugrad.ops.name`` and ``plugrad.name`` can belong to a new plugin."""
    _check_form("a namespace", name)
    _check_plugin(name)
    if name in {op.namespace for op in all_operators()}:
        raise ScaffoldError(f"the namespace {name!r} has operators already: choose another name")
    import plugrad

    # Not hasattr, which would load every plugin.
    modules = {module.name for module in pkgutil.iter_modules(plugrad.__path__)}
    if name in PUBLISHED or name in modules or name in dir(plugrad):
        raise ScaffoldError(f"plugrad.{name} exists already: choose another name")


def check_kernels_name(name: str) -> None:
    """Raise unless a package with kernels can be called so, behind ``plugrad-``."""
    _check_form("a package's name", name)
    _check_plugin(name)


def check_distribution(distribution: str) -> None:
    """Raise unless a new distribution can have this name, and its package the name it implies."""
    if not _DISTRIBUTION.fullmatch(distribution):
        raise ScaffoldError(
            f"{distribution!r} is not a distribution name: letters, digits and single '-', '_' or "
            "'.' between them"
        )
    if len(distribution) > LONGEST_DISTRIBUTION:
        raise ScaffoldError(f"{distribution!r} is longer than {LONGEST_DISTRIBUTION} characters")
    package = package_of(distribution)
    if not package.isidentifier() or keyword.iskeyword(package):
        raise ScaffoldError(
            f"the distribution {distribution!r} would have the package {package!r}, "
            "which Python cannot import: choose another name"
        )
    if package in sys.stdlib_module_names or package == "plugrad":
        raise ScaffoldError(f"{package!r} is a package already: choose another name")
    wanted = normalized(distribution)
    for found in importlib.metadata.distributions():
        if found.name and normalized(found.name) == wanted:
            raise ScaffoldError(
                f"the distribution {found.name} {found.version} is installed already: "
                "choose another name"
            )
    if importlib.util.find_spec(package) is not None:
        raise ScaffoldError(f"a package {package!r} can be imported already: choose another name")


# Libraries with another module that follows the standard.
STANDARD_MODULES: Final = {
    name: f"array_api_compat.{name}" for name in ("torch", "cupy", "dask.array")
}


def check_module(name: str) -> None:
    """Raise unless this is the dotted name of a module that follows the array API standard."""
    parts = name.split(".")
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise ScaffoldError(
            f"{name!r} is not a module: expected a name such as 'array_api_strict' or 'jax.numpy'"
        )
    proposed = STANDARD_MODULES.get(name)
    hint = f"; try {proposed!r}, which does (pip install array-api-compat)" if proposed else ""
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise ScaffoldError(
            f"{name!r} cannot be imported ({type(error).__name__}: {error}): install the library "
            f"first, since the backend is derived from it{hint}"
        ) from error
    if not hasattr(module, "__array_namespace_info__"):
        raise ScaffoldError(
            f"{name!r} has no __array_namespace_info__(), so that it does not follow the Python "
            f"array API standard{hint}"
        )


def distribution_of(module: str) -> str:
    """What to pip install for a module: the installed distribution that provides it, else its
    name."""
    top = module.partition(".")[0]
    provided = importlib.metadata.packages_distributions().get(top)
    return normalized(provided[0] if provided else top)


def _check_form(what: str, name: str) -> None:
    if _NAME.fullmatch(name) and len(name) <= LONGEST and not keyword.iskeyword(name):
        return
    if keyword.iskeyword(name):
        reason = "a keyword of Python"
    elif len(name) > LONGEST:
        reason = f"longer than {LONGEST} characters"
    else:
        reason = "not of lower-case letters, digits and single '_' between them"
    proposed = "_".join(re.findall(r"[a-z0-9]+", name.lower()))
    hint = f"; try {proposed!r}" if proposed != name and _NAME.fullmatch(proposed) else ""
    raise ScaffoldError(f"{name!r} cannot be {what}: it is {reason}{hint}")


def _check_plugin(name: str) -> None:
    plugin = get_manager().discovered().get(name)
    if plugin is not None:
        raise ScaffoldError(
            f"a plugin named {name!r} is installed already ({plugin.origin}): choose another name"
        )


def listed(names: Iterable[str]) -> str:
    """``a, b or c``."""
    *rest, last = names
    return f"{', '.join(rest)} or {last}" if rest else last
