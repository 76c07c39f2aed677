"""Kernels of special functions, divisors, and neighbours and parts of floating point numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad.plugins.special_functions import function_named
from plugrad_cpu.kernels.linalg import is_narrow, widen
from plugrad_cpu.numerics.adapters import Array, Kernel, rejecting, rejecting_binary


def _unary(name: str) -> Kernel:
    """SciPy is looked for at the first call: it imports slowly."""

    def kernel(a: Array) -> Any:
        with np.errstate(all="ignore"):
            found = np.asarray(function_named(name)(widen(a)))
        return found.astype(a.dtype, copy=False)

    return kernel


def _binary(name: str) -> Kernel:
    def kernel(a: Array, b: Array) -> Any:
        with np.errstate(all="ignore"):
            found = np.asarray(function_named(name)(widen(a), widen(b)))
        return found.astype(a.dtype, copy=False)

    return rejecting_binary("biuc", f"{name}_cpu", kernel)


def frexp(a: Array) -> Any:
    mantissa, exponent = np.frexp(widen(a) if is_narrow(a) else a)
    return mantissa.astype(a.dtype, copy=False), exponent.astype(np.int32, copy=False)


KERNELS: Final[dict[str, Kernel]] = {
    "lgamma": rejecting("c", "lgamma_vml_cpu", _unary("lgamma")),
    "digamma": rejecting("c", "digamma", _unary("digamma")),
    "erfinv": rejecting("c", "erfinv_vml_cpu", _unary("erfinv")),
    "i0": rejecting("c", "i0_vml_cpu", _unary("i0")),
    "special_i1": rejecting("c", "i1_cpu", _unary("i1")),
    "igamma": _binary("igamma"),
    "igammac": _binary("igammac"),
    "gcd": rejecting_binary("bfcV", "gcd_cpu", np.gcd),
    "lcm": rejecting_binary("bfcV", "lcm_cpu", np.lcm),
    "nextafter": rejecting_binary("biuc", "nextafter_cpu", np.nextafter),
    "frexp": frexp,
}
