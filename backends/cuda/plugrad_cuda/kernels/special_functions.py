"""Kernels of special functions, divisors, and neighbours and parts of floating point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad_cuda.kernels.family import Family, is_narrow, rejecting, widen
from plugrad_cuda.kernels.namespace import Array, Kernel

# Ours, and what cupyx.scipy.special calls them.
_UNARY = {
    "lgamma": ("gammaln", "lgamma_cuda"),
    "digamma": ("digamma", "digamma"),
    "erfinv": ("erfinv", "erfinv_cuda"),
    "i0": ("i0", "i0_cuda"),
    "special_i1": ("i1", "i1_cuda"),
}
_BINARY = {"igamma": "gammainc", "igammac": "gammaincc"}


class SpecialFunctions(Family):
    """What only some dtypes have: 16-bit floats compute in float32, or are left to others."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            **{name: self.unary(theirs, said) for name, (theirs, said) in _UNARY.items()},
            **{name: self.binary(name, theirs) for name, theirs in _BINARY.items()},
            "gcd": rejecting("bfcV", "gcd_cuda", self.xp.gcd),
            "lcm": rejecting("bfcV", "lcm_cuda", self.xp.lcm),
            "nextafter": rejecting("biuc", "nextafter_cuda", self.nextafter),
            "frexp": self.frexp,
        }

    def unary(self, theirs: str, said: str) -> Kernel:
        function = self.ns.special(theirs)

        def kernel(a: Array) -> Any:
            return function(widen(a)).astype(a.dtype, copy=False)

        return rejecting("c", said, kernel)

    def binary(self, name: str, theirs: str) -> Kernel:
        function = self.ns.special(theirs)

        def kernel(a: Array, b: Array) -> Any:
            return function(widen(a), widen(b)).astype(a.dtype, copy=False)

        return rejecting("biuc", f"{name}_cuda", kernel)

    def nextafter(self, a: Array, b: Array) -> Any:
        return NotImplemented if is_narrow(a) else self.xp.nextafter(a, b)

    def frexp(self, a: Array) -> Any:
        mantissa, exponent = self.xp.frexp(widen(a))
        return mantissa.astype(a.dtype, copy=False), exponent.astype(np.int32, copy=False)
