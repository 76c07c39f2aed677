"""Kernels that draw from distributions, by `jax.random`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.creation import drawing, in_dtype
from plugrad_jax.kernels.programs import Array, Kernel


def _generator_last(drawn: Kernel) -> Kernel:
    def kernel(*args: Any) -> Any:
        return drawn(args[-1], *args[:-1])

    return kernel


def _inside(key: Any, array: Array) -> Array:
    """Uniform numbers in (0, 1)."""
    wide = jnp.result_type(float)
    return jax.random.uniform(key, array.shape, wide, np.finfo(wide).tiny, 1.0)


@_generator_last
@drawing()
def cauchy_(key: Any, array: Array, median: Any, sigma: Any) -> Array:
    drawn = jnp.tan(jnp.pi * (_inside(key, array) - 0.5))
    return in_dtype(median + sigma * drawn, array.dtype)


@_generator_last
@drawing()
def log_normal_(key: Any, array: Array, mean: Any, std: Any) -> Array:
    drawn = jax.random.normal(key, array.shape, jnp.result_type(float))
    return in_dtype(jnp.exp(drawn * std + mean), array.dtype)


@_generator_last
@drawing()
def geometric_(key: Any, array: Array, p: Any) -> Array:
    return in_dtype(jnp.ceil(jnp.log(_inside(key, array)) / jnp.log1p(-p)), array.dtype)


def _no_rate(detail: Any) -> Exception:
    return RuntimeError("invalid Poisson rate, expected rate to be non-negative")


def poisson(rates: Array, generator: Any) -> Array:
    drawn, bad = _poisson(generator, rates)
    raise_later(bad, _no_rate)
    return drawn


@drawing()
def _poisson(key: Any, rates: Array) -> tuple[Array, Array]:
    fine = rates >= 0
    wide = jnp.where(fine, rates, 0).astype(jnp.result_type(float))
    drawn = jax.random.poisson(key, wide, dtype=jnp.result_type(int))
    return drawn.astype(rates.dtype), ~jnp.all(fine)


@_generator_last
@drawing()
def binomial(key: Any, count: Array, prob: Array) -> Array:
    trials, chances = jnp.maximum(count, 0), jnp.clip(prob, 0, 1)
    drawn = jax.random.binomial(key, trials, chances, dtype=count.dtype)
    return jnp.where(jnp.isnan(prob), prob, jnp.where(chances == 0, 0, drawn)).astype(count.dtype)


@_generator_last
@drawing()
def standard_gamma(key: Any, alpha: Array) -> Array:
    drawn = jax.random.gamma(key, alpha, dtype=alpha.dtype)
    return jnp.maximum(drawn, np.finfo(alpha.dtype).tiny)


@_generator_last
@drawing()
def sample_dirichlet(key: Any, alpha: Array) -> Array:
    logarithms = jax.random.loggamma(key, alpha, dtype=alpha.dtype)
    shares = jax.nn.softmax(logarithms, -1) if alpha.ndim else jnp.ones_like(alpha)
    below = jnp.nextafter(jnp.ones((), alpha.dtype), jnp.zeros((), alpha.dtype))
    return jnp.clip(shares, np.finfo(alpha.dtype).tiny, below)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "cauchy_": cauchy_,
    "log_normal_": log_normal_,
    "geometric_": geometric_,
    "poisson": poisson,
    "binomial": binomial,
    "_standard_gamma": standard_gamma,
    "_sample_dirichlet": sample_dirichlet,
}
