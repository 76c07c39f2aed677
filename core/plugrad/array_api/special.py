"""Special functions under SciPy's names: SciPy asks a namespace for them before it leaves it for
its own compiled code, in which gradients end.

They are those of plugrad-special, where it is installed, and of the core. What neither has is
missing here, and SciPy computes it with NumPy.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable
from typing import Any

from plugrad.array_api._operators import F
from plugrad.array_api._promotion import operands
from plugrad.plugins.namespaces import load_namespace

# SciPy's names of functions that have another name here.
_OTHER_NAMES = {
    "expit": "sigmoid", "gammaln": "lgamma", "j0": "bessel_j0", "j1": "bessel_j1",
    "psi": "digamma", "y0": "bessel_y0", "y1": "bessel_y1",
}  # fmt: skip
# Arguments that are numbers and no arrays.
_NUMBERS = {"multigammaln": (1,), "polygamma": (0,)}


def _operator(name: str) -> Callable[..., Any] | None:
    other = _OTHER_NAMES.get(name, name)
    for place in (_of_plugin(), F):
        for each in (name, other, f"special_{name}", f"special_{other}"):
            found: Callable[..., Any] | None = getattr(place, each, None)
            if found is not None:
                return found
    return None


def _of_plugin() -> Any:
    try:
        return load_namespace("special")
    except (AttributeError, ModuleNotFoundError):
        return None


def __getattr__(name: str) -> Any:
    operator = None if name.startswith("_") else _operator(name)
    if operator is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def function(*args: Any, **options: Any) -> Any:
        numbers = _NUMBERS.get(name, ())
        arrays = iter(operands(*(x for place, x in enumerate(args) if place not in numbers)))
        given = [int(x) if place in numbers else next(arrays) for place, x in enumerate(args)]
        return operator(*given, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    function.__module__ = __name__
    globals()[name] = function
    return function
