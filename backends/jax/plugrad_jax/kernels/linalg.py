"""Kernels of matrix products.

Products of float32 are computed in float32 wherever they run, as PyTorch does by default: JAX
rounds the operands to fewer bits on GPUs and TPUs by default. Its own configuration
(`jax_default_matmul_precision`) takes precedence. 16-bit floats are added up in float32.
"""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad_jax.kernels.programs import Array, Kernel, constant, is_narrow, program, widen

_config: Final[Any] = jax.config

_Axes = tuple[tuple[int, ...], tuple[int, ...]]


def _dot(a: Array, b: Array, contract: _Axes, batch: _Axes = ((), ())) -> Array:
    precision = None if _config.jax_default_matmul_precision else lax.Precision.HIGHEST
    return lax.dot_general(
        a,
        b,
        (contract, batch),
        precision=precision,
        preferred_element_type=np.dtype(np.float32) if is_narrow(a) else a.dtype,
    )


def product(a: Array, b: Array) -> Array:
    """The product of matrices, vectors, or batches of matrices; wide for 16-bit floats."""
    if a.ndim == 3:
        return _dot(a, b, ((2,), (1,)), ((0,), (0,)))
    return _dot(a, b, ((a.ndim - 1,), (0,)))


def _matmul(a: Array, b: Array) -> Array:
    return product(a, b).astype(a.dtype)


def _adjoint(a: Array) -> Array:
    turned = jnp.swapaxes(a, -1, -2)
    return jnp.conj(turned) if a.dtype.kind == "c" else turned


def _matmul_nh(a: Array, b: Array) -> Array:
    return _matmul(a, _adjoint(b))


def _matmul_hn(a: Array, b: Array) -> Array:
    return _matmul(_adjoint(a), b)


def _vdot(a: Array, b: Array) -> Array:
    return _matmul(jnp.conj(a) if a.dtype.kind == "c" else a, b)


def _addmm(c: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
    """`beta * c + alpha * a @ b`; `c` is not read if beta is 0."""
    out = product(a, b)
    if alpha != 1:
        out = out * constant(alpha, out)
    if beta != 0:
        addend = c.astype(out.dtype)
        out = out + (addend if beta == 1 else addend * constant(beta, out))
    return out.astype(a.dtype)


def _linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """`x @ weight.T + bias` as one matrix product, whatever the dimensions of `x`."""
    out = _dot(x, weight, ((x.ndim - 1,), (weight.ndim - 1,)))
    if bias is not None:
        out = out + bias.astype(out.dtype)
    return out.astype(x.dtype)


def _linear_backward(
    x: Array, grad: Array, weight: Array, mask: tuple[bool, bool, bool]
) -> tuple[Any, Any, Any]:
    """The gradients of `linear` toward its input, weight and bias; None if not requested."""
    if weight.ndim == 1:
        found = _linear_backward(x, grad[..., None], weight[None, :], mask)
        return found[0], None if found[1] is None else found[1][0], None
    if x.dtype.kind == "c":
        x, weight = jnp.conj(x), jnp.conj(weight)
    to_input = to_weight = to_bias = None
    leading = tuple(range(grad.ndim - 1))
    if mask[0]:
        to_input = _dot(grad, weight, ((grad.ndim - 1,), (0,))).astype(x.dtype)
    if mask[1]:
        to_weight = _dot(grad, x, (leading, leading)).astype(x.dtype)
    if mask[2]:
        to_bias = jnp.sum(widen(grad), leading).astype(x.dtype)
    return to_input, to_weight, to_bias


def _trace(a: Array) -> Array:
    wide = a.astype(np.int64) if a.dtype.kind in "biu" else widen(a)
    total = jnp.sum(jnp.diagonal(wide))
    return total if a.dtype.kind in "biu" else total.astype(a.dtype)


KERNELS: Final[dict[str, Kernel]] = {
    **{name: program(_matmul) for name in ("mm", "bmm", "mv", "dot")},
    "_matmul_nh": program(_matmul_nh),
    "_matmul_hn": program(_matmul_hn),
    "vdot": program(_vdot),
    "addmm": program(_addmm, 3, 4),
    "linear": program(_linear),
    "linear_backward": program(_linear_backward, 3),
    "trace": program(_trace),
}
