"""Kernels of matrix products: cuBLAS through CuPy.

cuBLAS multiplies 16-bit floats and adds up in float32.
"""

from __future__ import annotations

import math
from typing import Any

from plugrad_cuda.kernels.family import INT64, Family, accumulator, number, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace


def _scaled_sum(xp: Any, product: Array, c: Array, beta: Any, alpha: Any) -> Any:
    return product * alpha + c * beta


def _scaled(xp: Any, product: Array, alpha: Any) -> Any:
    return product * alpha


class Linalg(Family):
    """Products, and what neural networks make of them."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.scaled_sum = self.fused(_scaled_sum)
        self.scaled = self.fused(_scaled)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "mm": self.product,
            "bmm": self.product,
            "_matmul_nh": self.matmul_nh,
            "_matmul_hn": self.matmul_hn,
            "mv": self.product,
            "dot": self.product,
            "vdot": self.vdot,
            "addmm": self.addmm,
            "linear": self.linear,
            "linear_backward": self.linear_backward,
            "trace": self.trace,
        }

    def product(self, a: Array, b: Array) -> Any:
        return self.ns.matmul(a, b)

    def adjoint(self, a: Array) -> Array:
        """A view, which cuBLAS reads as it is; of complex matrices a copy."""
        turned = a.swapaxes(-1, -2)
        return self.xp.conjugate(turned) if a.dtype.kind == "c" else turned

    def matmul_nh(self, a: Array, b: Array) -> Any:
        return self.product(a, self.adjoint(b))

    def matmul_hn(self, a: Array, b: Array) -> Any:
        return self.product(self.adjoint(a), b)

    def vdot(self, a: Array, b: Array) -> Any:
        return self.product(self.xp.conjugate(a) if a.dtype.kind == "c" else a, b)

    def addmm(self, c: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Any:
        """`beta * c + alpha * a @ b`; `c` is not read if beta is 0."""
        product = self.product(a, b)
        if beta == 0:
            return product if alpha == 1 else self.scaled(product, number(alpha, a.dtype))
        if alpha == 1 and beta == 1:
            return self.xp.add(product, c, out=product)
        return self.scaled_sum(product, c, number(beta, a.dtype), number(alpha, a.dtype))

    def linear(self, x: Array, weight: Array, bias: Array | None) -> Any:
        """`x @ weight.T + bias` as one matrix product, whatever the dimensions of `x`."""
        if weight.ndim == 1:
            return self.product(x, weight)
        out = self.product(_rows(x), weight.T).reshape(*x.shape[:-1], weight.shape[0])
        return out if bias is None else self.xp.add(out, bias, out=out)

    def linear_backward(
        self, x: Array, grad: Array, weight: Array, mask: tuple[bool, bool, bool]
    ) -> tuple[Any, Any, Any]:
        """The gradients of `linear` toward its input, weight and bias; None if not requested."""
        if weight.ndim == 1:
            found = self.linear_backward(x, grad[..., None], weight[None, :], mask)
            return found[0], None if found[1] is None else found[1][0], None
        to_input = to_weight = to_bias = None
        rows = _rows(grad)
        if mask[0]:
            factor = self.xp.conjugate(weight) if x.dtype.kind == "c" else weight
            to_input = self.product(rows, factor).reshape(x.shape)
        if mask[1]:
            flat = self.xp.conjugate(x) if x.dtype.kind == "c" else x
            to_weight = self.product(rows.T, _rows(flat))
        if mask[2]:
            to_bias = self.xp.sum(rows, axis=0, dtype=accumulator(rows.dtype))
            to_bias = to_bias.astype(grad.dtype, copy=False)
        return to_input, to_weight, to_bias

    def trace(self, a: Array) -> Any:
        diagonal = widen(self.xp.diagonal(a))
        dtype = INT64 if a.dtype.kind in "biu" else diagonal.dtype
        total = self.xp.sum(diagonal, dtype=dtype)
        return total if a.dtype.kind in "biu" else total.astype(a.dtype, copy=False)


def _rows(a: Array) -> Array:
    """An array of any dimensions as a matrix, also where there is nothing in it."""
    if a.ndim == 2:
        return a
    return a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
