"""Kernels of special functions, divisors, and neighbours and parts of floating point numbers."""

from __future__ import annotations

from typing import Any, Final

import jax.numpy as jnp
import jax.scipy.special as sp
from jax import lax

from plugrad_jax.kernels.programs import (
    Array,
    Kernel,
    in_float32,
    is_narrow,
    program,
    rejecting,
    widen,
)


def _lgamma(x: Array) -> Array:
    return lax.lgamma(x)


def _digamma(x: Array) -> Array:
    # JAX has nan at 0, where PyTorch has infinity with the other sign.
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), lax.digamma(x))


def polygamma(n: int, x: Array) -> Any:
    if x.dtype.kind == "c":
        return NotImplemented
    return _polygamma(n, x)


def _polygamma_in_wide(n: int, x: Array) -> Array:
    if n == 0:
        return in_float32(_digamma)(x)
    wide = widen(x)
    # JAX's zeta function is right for positive arguments only: DLMF 5.15.6 on the other side.
    left = wide < 0.5
    mirrored = jnp.where(left, 1 - wide, wide)
    right = sp.polygamma(n, mirrored).astype(wide.dtype)
    sine = jnp.where(left, wide, 0.5)
    value = jnp.where(left, (-1) ** n * right - _cotangent_derivative(n, sine), right)
    pole = (wide <= 0) & (wide == jnp.floor(wide))
    return jnp.where(pole, (-1) ** (n + 1) * jnp.inf, value).astype(x.dtype)


def _cotangent_derivative(n: int, x: Array) -> Array:
    """The n-th derivative of pi cot(pi x), a polynomial in c = cot(pi x): c' = -pi (1 + c^2)."""
    coefficients = [0.0, 1.0]
    for _ in range(n):
        slope = [k * value for k, value in enumerate(coefficients)][1:]
        product = [0.0] * (len(slope) + 2)
        for k, value in enumerate(slope):
            product[k] -= jnp.pi * value
            product[k + 2] -= jnp.pi * value
        coefficients = product
    cotangent = 1 / jnp.tan(jnp.pi * x)
    total = jnp.zeros_like(x)
    for value in reversed(coefficients):
        total = total * cotangent + value
    return jnp.pi * total


def _frexp(x: Array) -> tuple[Array, Array]:
    mantissa, exponent = jnp.frexp(widen(x))
    return mantissa.astype(x.dtype), exponent.astype(jnp.int32)


def _nextafter(a: Array, b: Array) -> Array:
    if not is_narrow(a):
        return jnp.nextafter(a, b)
    return lax.nextafter(*jnp.broadcast_arrays(a, b))


def _binary(name: str, function: Kernel) -> Kernel:
    return rejecting("biuc", f"{name}_cpu", in_float32(function))


_polygamma: Final = program(_polygamma_in_wide, 0)

_FLOATING: Final[dict[str, Kernel]] = {
    "lgamma": rejecting("c", "lgamma_vml_cpu", in_float32(_lgamma)),
    "digamma": rejecting("c", "digamma", in_float32(_digamma)),
    "erfinv": rejecting("c", "erfinv_vml_cpu", in_float32(sp.erfinv)),
    "i0": rejecting("c", "i0_vml_cpu", in_float32(sp.i0)),
    "special_i1": rejecting("c", "i1_cpu", in_float32(sp.i1)),
    "igamma": _binary("igamma", sp.gammainc),
    "igammac": _binary("igammac", sp.gammaincc),
    "nextafter": rejecting("biuc", "nextafter_cpu", _nextafter),
    "gcd": rejecting("bfcV", "gcd_cpu", jnp.gcd),
    "lcm": rejecting("bfcV", "lcm_cpu", jnp.lcm),
    "frexp": _frexp,
}

KERNELS: Final[dict[str, Kernel]] = {
    **{name: program(function) for name, function in _FLOATING.items()},
    "polygamma": polygamma,
}
