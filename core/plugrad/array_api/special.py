"""Special functions under SciPy's names.

SciPy looks for them in the namespace before it falls back to its own compiled code, which has no
gradients. They come from plugrad-special, if it is installed, and from the core. SciPy computes the
others with NumPy.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from collections.abc import Callable
from typing import Any

from plugrad.array_api._array import arrays_from_arrays
from plugrad.array_api._operators import F, Tensor
from plugrad.array_api._promotion import operands
from plugrad.array_api._searching import unique_values
from plugrad.plugins.namespaces import load_namespace

# SciPy's names of functions that have another name here.
_OTHER_NAMES = {
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma",
    "multigammaln": "mvlgamma", "j0": "bessel_j0", "j1": "bessel_j1",
    "psi": "digamma", "y0": "bessel_y0", "y1": "bessel_y1",
}  # fmt: skip
# The position of the integer argument that the operator takes as a number.
_DEGREES = {"expn": 0, "multigammaln": 1, "polygamma": 0}


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

    place = _DEGREES.get(name)

    def function(*args: Any, **options: Any) -> Any:
        if place is None:
            return operator(*operands(*args), **options)
        degree = args[place]
        before = operands(*args[:place]) if place else []
        after = operands(*args[place + 1 :]) if args[place + 1 :] else []
        if not isinstance(degree, Tensor):
            return operator(*before, int(degree), *after, **options)
        found: Any = 0.0
        for each in unique_values(degree).tolist():
            of_each = operator(*before, int(each), *after, **options)
            found = F.where(degree == each, of_each, found)
        return found

    function = arrays_from_arrays(function)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    function.__module__ = __name__
    globals()[name] = function
    return function
