"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad_onnx.onnx.builder import Builder, Value
from plugrad_onnx.onnx.dtypes import computes_in
from plugrad_onnx.onnx.registry import lowers


def product_of(b: Builder, x: Value, y: Value) -> Value:
    """The matrix product, as NumPy's `matmul` broadcasts."""
    dtype = computes_in(b.dtype)
    return b.cast(b.op("MatMul", b.cast(x, dtype), b.cast(y, dtype)), b.dtype)


@lowers("mm", "bmm", "matmul", "mv", "dot")
def matmul(b: Builder, x: Value, y: Value) -> Value:
    return product_of(b, x, y)


@lowers("_matmul_nh")
def matmul_nh(b: Builder, x: Value, y: Value) -> Value:
    return product_of(b, x, _turned(b, y))


@lowers("_matmul_hn")
def matmul_hn(b: Builder, x: Value, y: Value) -> Value:
    return product_of(b, _turned(b, x), y)


def _turned(b: Builder, x: Value) -> Value:
    return b.transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@lowers("linear")
def linear(b: Builder, x: Value, weight: Value, bias: Value | None = None) -> Value:
    if x.ndim == 2 and weight.ndim == 2 and (bias is None or bias.ndim == 1):
        return b.op("Gemm", x, weight, bias, transB=1)
    turned = b.transpose(weight, [1, 0]) if weight.ndim == 2 else weight
    result = b.op("MatMul", x, turned)
    return result if bias is None else b.op("Add", result, bias)


@lowers("addmm")
def addmm(b: Builder, x: Value, m: Value, n: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    if beta == 0:
        x, beta = None, 1  # type: ignore[assignment]  # what is not added may be nan
    if computes_in(b.dtype) != b.dtype:
        return _added(b, x, product_of(b, m, n), beta, alpha)
    return b.op("Gemm", m, n, x, alpha=float(alpha), beta=float(beta))


@lowers("baddbmm")
def baddbmm(b: Builder, x: Value, m: Value, n: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    return _added(b, None if beta == 0 else x, product_of(b, m, n), beta, alpha)


def _added(b: Builder, x: Value | None, y: Value, beta: Any, alpha: Any) -> Value:
    dtype = computes_in(b.dtype)
    y = b.cast(y, dtype)
    if alpha != 1:
        y = b.op("Mul", y, b.number(alpha, dtype))
    if x is not None:
        x = b.cast(x, dtype)
        if beta != 1:
            x = b.op("Mul", x, b.number(beta, dtype))
        y = b.op("Add", x, y)
    return b.cast(y, b.dtype)


@lowers("_einsum")
def einsum(
    b: Builder, equation: str, tensors: Sequence[Value], path: Sequence[int] | None = None
) -> Value:
    dtype = computes_in(b.dtype)
    given = [b.cast(x, dtype) for x in tensors]
    return b.cast(b.op("Einsum", *given, equation=equation.replace(" ", "")), b.dtype)


@lowers("linalg_det", "det")
def det(b: Builder, x: Value) -> Value:
    return b.op("Det", x)
