"""The integral that covers all derivatives of Carlson's elliptic integrals, by quadrature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Nodes of the double exponential rule t = exp(pi/2 sinh(s)). The end points make even t^(1/2) at 0
# and t^(-1/2) at infinity vanish; the step resolves arguments 10 orders of magnitude apart.
_STEP = 1 / 40
_NODES = np.arange(-5.2, 5.2 + _STEP / 2, _STEP)


def carlson_integral(x: Any, y: Any, z: Any, p: Any, powers: Sequence[int]) -> Any:
    """Integral of (t + x)^(-a/2) (t + y)^(-b/2) (t + z)^(-c/2) (t + p)^(-d/2) over t > 0.

    `powers` are a, b, c, d. The result is nan for real arguments on the negative axis, where the
    integral has no value or only a principal one. Accurate to about 1e-13 for arguments of
    comparable size.
    """
    pairs = [(value, power) for value, power in zip((x, y, z, p), powers, strict=True) if power]
    values = np.broadcast_arrays(*(value for value, _ in pairs), x, y, z, p)[: len(pairs)]
    wide: Any = np.complex128 if values[0].dtype.kind == "c" else np.float64
    arguments = [value.astype(wide) for value in values]
    scale = _scale(arguments)
    total = np.zeros(values[0].shape, wide)
    for node in _NODES:
        t = scale * np.exp(np.pi / 2 * np.sinh(node))
        term = t * (np.pi / 2 * np.cosh(node) * _STEP)
        for argument, (_, power) in zip(arguments, pairs, strict=True):
            term = term * (t + argument) ** (-power / 2)
        total = total + term
    # Integer powers would give a number although there is a pole on the path.
    on_the_cut = sum(((a.imag == 0) & (a.real < 0)).astype(np.int64) for a in arguments)
    return np.where(on_the_cut > 0, np.nan, total)


def _scale(arguments: list[Any]) -> Any:
    """The geometric mean of the nonzero magnitudes: where the integrand bends."""
    count = sum((argument != 0).astype(np.float64) for argument in arguments)
    logarithms = [np.log(np.where(argument == 0, 1.0, np.abs(argument))) for argument in arguments]
    return np.exp(sum(logarithms) / np.maximum(count, 1))
