"""Special functions of real NumPy arrays: SciPy's if it is installed, else slower ones.

For decompositions that compute on the host, and for backends with arrays on the host.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
import importlib
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

__all__ = ["function_named"]

Array = Any
Function = Callable[..., Any]

# B_2, B_4, ..., for the asymptotic series of polygamma functions.
_BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330,
)  # fmt: skip
# From here on the series above is accurate.
_FAR: Final = 15.0
_NAMES: Final = {"lgamma": "gammaln", "igamma": "gammainc", "igammac": "gammaincc"}
_MOST_STEPS: Final = 100_000


@cache
def function_named(name: str) -> Function:
    """lgamma, digamma, polygamma (of n, x), erfinv, igamma, igammac, i0 or i1.

    >>> import numpy as np
    >>> from plugrad.plugins.special_functions import function_named
    >>> float(function_named("lgamma")(np.array(5.0)).round(4))
    3.1781
    """
    try:
        special: Any = importlib.import_module("scipy.special")
    except ImportError:
        return plain(name)
    found: Function = getattr(special, _NAMES.get(name, name))
    return _EDGES[name](found) if name in _EDGES else found


def plain(name: str) -> Function:
    """The function that does without SciPy."""
    function = _PLAIN[name]

    def computed(*args: Any) -> Any:
        given = args[-1].dtype
        wide = [np.asarray(x, np.float64) if isinstance(x, np.ndarray) else x for x in args]
        with np.errstate(all="ignore"):
            return np.asarray(function(*wide)).astype(given)

    return computed


def _lgamma_at_minus_infinity(function: Function) -> Function:
    # C's lgamma, and so PyTorch, has inf where SciPy has -inf.
    return lambda x: np.where(np.isneginf(x), np.inf, function(x)).astype(x.dtype)


def _polygamma_in_dtype(function: Function) -> Function:
    return lambda n, x: np.asarray(function(n, x)).astype(x.dtype)


_EDGES: Final[dict[str, Callable[[Function], Function]]] = {
    "lgamma": _lgamma_at_minus_infinity,
    "polygamma": _polygamma_in_dtype,
}


def _log_gamma_of(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def _lgamma(x: Array) -> Array:
    return np.asarray(np.frompyfunc(_log_gamma_of, 1, 1)(x), np.float64) if x.size else x


def _digamma(x: Array) -> Array:
    """By the reflection formula DLMF 5.5.4 left of 0, the recurrence 5.5.2, the series 5.11.2."""
    left = x < 0
    y = np.where(left, 1 - x, x)
    total = np.zeros_like(y)
    while True:
        near = y < _FAR
        if not near.any():
            break
        total = total - np.where(near, 1 / y, 0)
        y = np.where(near, y + 1, y)
    inverse = 1 / (y * y)
    series = np.zeros_like(y)
    for k in range(len(_BERNOULLI), 0, -1):
        series = inverse * (_BERNOULLI[k - 1] / (2 * k) + series)
    value = total + np.log(y) - 0.5 / y - series
    value = np.where(left, value - np.pi / np.tan(np.pi * x), value)
    value = np.where(left & (x == np.floor(x)), np.nan, value)
    return np.where(x == 0, np.copysign(np.inf, -x), value)


def _polygamma(n: int, x: Array) -> Array:
    """By DLMF 5.15.6 left of 1/2, else by 5.15.5 and 5.15.8 differentiated."""
    if n == 0:
        return _digamma(x)
    left = x < 0.5
    right = _polygamma_right(n, np.where(left, 1 - x, x))
    cotangent = 1 / np.tan(np.pi * np.where(left, x, 0.5))
    slope = np.polynomial.Polynomial([0, 1])
    for _ in range(n):
        slope = slope.deriv() * np.polynomial.Polynomial([-1, 0, -1]) * np.pi
    value = np.where(left, (-1) ** n * right - np.pi * slope(cotangent), right)
    pole = (x <= 0) & (x == np.floor(x))
    return np.where(pole, (-1) ** (n + 1) * np.inf, value)


def _polygamma_right(n: int, y: Array) -> Array:
    total = np.zeros_like(y)
    far = _FAR + n
    while True:
        near = y < far
        if not near.any():
            break
        total = total + np.where(near, math.factorial(n) / y ** (n + 1), 0)
        y = np.where(near, y + 1, y)
    series = math.factorial(n - 1) / y**n + math.factorial(n) / (2 * y ** (n + 1))
    for k, number in enumerate(_BERNOULLI, 1):
        scale = number * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        series = series + scale / y ** (2 * k + n)
    return (-1) ** (n + 1) * (total + series)


def _erfinv(y: Array) -> Array:
    """Halley's method, from an approximation by logarithms; by `erfc` where erf is near 1."""
    size = np.minimum(np.abs(y), 1)
    logarithm = np.log1p(-size * size)
    half = 2 / (math.pi * 0.147) + logarithm / 2
    x = np.sqrt(np.sqrt(half * half - logarithm / 0.147) - half)
    complement = np.frompyfunc(math.erfc, 1, 1)
    for _ in range(3):
        if not x.size:
            break
        finite = np.where(np.isfinite(x), x, 0)
        error = (1 - size) - np.asarray(complement(finite), np.float64)
        # -error / erf'(x)
        step = error * (math.sqrt(math.pi) / 2) * np.exp(finite * finite)
        x = np.where(np.isfinite(x), x - step / (1 + finite * step), x)
    # Near 0 the approximation cancels: two terms of the series serve.
    small = size * (math.sqrt(math.pi) / 2) * (1 + math.pi / 12 * size * size)
    value = np.where(size == 1, np.inf, np.where(size < 1e-4, small, x))
    return np.where(np.abs(y) <= 1, np.copysign(value, y), np.nan)


def _incomplete(a: Array, x: Array, *, upper: bool) -> Array:
    """P(a, x) or Q(a, x): the series DLMF 8.11.4 for x < a + 1, else the fraction 8.9.2."""
    a, x = np.broadcast_arrays(a, x)
    series_serves = x < a + 1
    scale = np.exp(a * np.log(x) - x - _lgamma(a))
    lower = _by_series(np.where(series_serves, a, 1), np.where(series_serves, x, 0)) * scale
    rest = _by_fraction(np.where(series_serves, 1, a), np.where(series_serves, 3, x)) * scale
    value = np.where(series_serves, 1 - lower if upper else lower, rest if upper else 1 - rest)
    ends: tuple[tuple[Array, float], ...] = (
        (x == 0, 0.0),
        (np.isinf(a), 0.0),
        ((a == 0) & (x > 0), 1.0),
        (np.isinf(x) & np.isfinite(a), 1.0),
    )
    for where, below in ends:
        value = np.where(where, 1 - below if upper else below, value)
    wrong = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (np.isinf(a) & np.isinf(x))
    return np.where(wrong | np.isnan(a) | np.isnan(x), np.nan, value)


def _by_series(a: Array, x: Array) -> Array:
    term = 1 / a
    total = term
    for k in range(1, _MOST_STEPS):
        term = term * (x / (a + k))
        total = total + term
        if not (term > total * 1e-17).any():
            break
    return total


def _by_fraction(a: Array, x: Array) -> Array:
    """Lentz's method."""
    tiny = 1e-300
    b = x + 1 - a
    c = np.full_like(x, 1 / tiny)
    d = 1 / np.where(b == 0, tiny, b)
    value = d
    for k in range(1, _MOST_STEPS):
        factor = -k * (k - a)
        b = b + 2
        d = factor * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + factor / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        value = value * c * d
        if not (np.abs(c * d - 1) > 1e-16).any():
            break
    return value


def _bessel(order: int, x: Array) -> Array:
    """I_0 or I_1: the power series DLMF 10.25.2, far out the asymptotic one 10.40.1."""
    size = np.abs(x)
    near = np.minimum(size, 30.0)
    quarter = near * near / 4
    term = np.ones_like(near) if order == 0 else near / 2
    total = term
    for k in range(1, 120):
        term = term * quarter / (k * (k + order))
        total = total + term
    far = np.maximum(size, 30.0)
    part = np.ones_like(far)
    sum_ = part
    for k in range(1, 30):
        part = part * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * far)
        sum_ = sum_ + part
    # In two factors, because exp overflows before the quotient does.
    root = np.exp(far / 2)
    value = np.where(size <= 30, total, root * (sum_ / np.sqrt(2 * np.pi * far)) * root)
    value = np.where(np.isinf(x), np.inf, value)
    value = np.where(np.isnan(x), np.nan, value)
    return value if order == 0 else np.copysign(value, x)


_PLAIN: Final[dict[str, Function]] = {
    "lgamma": _lgamma,
    "digamma": _digamma,
    "polygamma": _polygamma,
    "erfinv": _erfinv,
    "igamma": lambda a, x: _incomplete(a, x, upper=False),
    "igammac": lambda a, x: _incomplete(a, x, upper=True),
    "i0": lambda x: _bessel(0, x),
    "i1": lambda x: _bessel(1, x),
}
