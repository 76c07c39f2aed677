"""Kernels of matrix products: BLAS through NumPy; 16-bit floats are multiplied in float32.

Uses `ndarray.dot` rather than `matmul` if both work: it is faster on small matrices, and does not
check for floating point errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = Any
Kernel = Callable[..., Any]

_FLOAT32: Final = np.dtype(np.float32)


def is_narrow(a: Array) -> bool:
    """Whether an array holds 16-bit floats, which are computed with in float32."""
    return a.itemsize == 2 and a.dtype.kind in "fV"


def widen(a: Array) -> Array:
    """16-bit floats in float32; the array itself otherwise."""
    return a.astype(_FLOAT32) if is_narrow(a) else a


def mm(a: Array, b: Array) -> Any:
    if a.itemsize == 2 and is_narrow(a):
        return widen(a).dot(widen(b)).astype(a.dtype)
    return a.dot(b)


def _product(a: Array, b: Array, out: Array | None = None) -> Any:
    return a.dot(b, out)


def _lowered_product(a: Array, b: Array) -> Any:
    plain = a.ndim == 2 and b.ndim == 2 and not is_narrow(a)
    return (_product, (a, b)) if plain else None


# What compiled steps call.
_product.takes_out = True  # type: ignore[attr-defined]  # functions take attributes
mm.lowered = _lowered_product  # type: ignore[attr-defined]


def bmm(a: Array, b: Array) -> Any:
    if a.itemsize == 2 and is_narrow(a):
        return np.matmul(widen(a), widen(b)).astype(a.dtype)
    return np.matmul(a, b)


def _adjoint(a: Array) -> Array:
    turned = a.T if a.ndim == 2 else a.swapaxes(-1, -2)
    return turned.conj() if a.dtype.kind == "c" else turned


def matmul_nh(a: Array, b: Array) -> Any:
    return mm(a, _adjoint(b)) if a.ndim == 2 else bmm(a, _adjoint(b))


def matmul_hn(a: Array, b: Array) -> Any:
    return mm(_adjoint(a), b) if a.ndim == 2 else bmm(_adjoint(a), b)


def vdot(a: Array, b: Array) -> Any:
    return mm(a.conj(), b) if a.dtype.kind == "c" else mm(a, b)


def addmm(c: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Any:
    """`beta * c + alpha * a @ b`, in one buffer; `c` is not read if beta is 0."""
    product = a.dot(b) if a.itemsize != 2 else widen(a).dot(widen(b))
    dtype = product.dtype
    if alpha != 1:
        np.multiply(product, np.array(alpha).astype(dtype), product)
    if beta == 1:
        np.add(product, c, product)
    elif beta != 0:
        np.add(product, np.multiply(widen(c), np.array(beta).astype(dtype)), product)
    return product if dtype is a.dtype else product.astype(a.dtype, copy=False)


def linear(x: Array, weight: Array, bias: Array | None) -> Any:
    """`x @ weight.T + bias` as one matrix product, whatever the dimensions of `x`."""
    if x.itemsize == 2 and is_narrow(x):
        wide = linear(widen(x), widen(weight), None if bias is None else widen(bias))
        return wide.astype(x.dtype)
    if x.ndim == 2 and weight.ndim == 2:
        return _linear_of_rows(x, weight, bias)
    if weight.ndim == 1:
        return x.dot(weight)
    out = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(_rows(x), x.shape[-1])
    out = out.dot(weight.T).reshape(*x.shape[:-1], weight.shape[0])
    return out if bias is None else np.add(out, bias)


def _linear_of_rows(x: Array, weight: Array, bias: Array | None, out: Array | None = None) -> Array:
    found: Array = x.dot(weight.T, out)
    if bias is not None:
        np.add(found, bias, out=found)
    return found


def _lowered_linear(x: Array, weight: Array, bias: Array | None) -> Any:
    plain = x.ndim == 2 and weight.ndim == 2 and not is_narrow(x)
    return (_linear_of_rows, (x, weight, bias)) if plain else None


# What compiled steps call.
_linear_of_rows.takes_out = True  # type: ignore[attr-defined]  # functions take attributes
linear.lowered = _lowered_linear  # type: ignore[attr-defined]


def _rows(a: Array) -> int:
    rows = 1
    for size in a.shape[:-1]:
        rows *= size
    return rows


def linear_backward(
    x: Array, grad: Array, weight: Array, mask: tuple[bool, bool, bool]
) -> tuple[Any, Any, Any]:
    """The gradients of `linear` toward its input, weight and bias; None if not requested."""
    if x.itemsize == 2 and is_narrow(x):
        wide = linear_backward(widen(x), widen(grad), widen(weight), mask)
        dtype = x.dtype
        return tuple(None if part is None else part.astype(dtype) for part in wide)  # type: ignore[return-value]  # three in, three out
    if weight.ndim == 1:
        found = linear_backward(x, grad[..., None], weight[None, :], mask)
        return found[0], None if found[1] is None else found[1][0], None
    if x.dtype.kind == "c":
        x = x.conj()
        weight = weight.conj()
    to_input = to_weight = to_bias = None
    rows = grad if grad.ndim == 2 else grad.reshape(_rows(grad), grad.shape[-1])
    if mask[0]:
        to_input = rows.dot(weight)
        if grad.ndim != 2:
            to_input = to_input.reshape(x.shape)
    if mask[1]:
        flat = x if x.ndim == 2 else x.reshape(rows.shape[0], x.shape[-1])
        to_weight = rows.T.dot(flat)
    if mask[2]:
        to_bias = np.add.reduce(rows, 0)
    return to_input, to_weight, to_bias


def trace(a: Array) -> Any:
    if is_narrow(a):
        return widen(a).trace().astype(a.dtype)
    return a.trace(dtype=np.int64 if a.dtype.kind in "biu" else None)


KERNELS: Final[dict[str, Kernel]] = {
    "mm": mm,
    "bmm": bmm,
    "_matmul_nh": matmul_nh,
    "_matmul_hn": matmul_hn,
    "mv": mm,
    "dot": mm,
    "vdot": vdot,
    "addmm": addmm,
    "linear": linear,
    "linear_backward": linear_backward,
    "trace": trace,
}
