"""Special functions on the host, and functions composed of them."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import bool_
from plugrad.graph.support import overwritten
from plugrad.ops import special_functions as host
from plugrad.ops.composite.elementwise.precision import widest
from plugrad.ops.composite.pointwise_discrete import on_host
from plugrad.ops.on_demand.prepare import special_functions as prepare
from plugrad.ops.prepare.pointwise_discrete import floating
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import float_result, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# Each takes a call, and one step of rounding.
_MOST_DIMENSIONS: Final = 100_000


def _of_one(name: str, kernel: str, self: TensorBase, *arguments: Any) -> TensorBase:
    dtype = float_result(self.dtype)
    if dtype.is_complex:
        raise not_implemented(kernel, dtype)
    function = partial(host.function_named(name), *arguments)
    return to_dtype(on_host(function, widest(dtype), self), dtype)


def _of_two(name: str, self: TensorBase, other: TensorBase) -> TensorBase:
    dtype = floating(self, other, f"{name}_cpu")
    return to_dtype(on_host(host.function_named(name), widest(dtype), self, other), dtype)


def lgamma(self: Tensor) -> TensorBase:
    return _of_one("lgamma", "lgamma_vml_cpu", self)


def digamma(self: Tensor) -> TensorBase:
    return _of_one("digamma", "digamma", self)


def polygamma(n: int, self: Tensor) -> TensorBase:
    prepare.check_polygamma(n, self)
    if n == 0:
        return digamma(self)
    return _of_one("polygamma", "trigamma" if n == 1 else "polygamma", self, n)


def polygamma_(self: Tensor, n: int) -> Tensor:
    _check_written(self)
    return self.copy_(F.polygamma(n, overwritten(self)))


def mvlgamma(self: Tensor, p: int) -> Tensor:
    _check_no_mask(self)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if p > _MOST_DIMENSIONS:
        raise NotImplementedError(
            f"mvlgamma(): argument 'p' (position 2): more than {_MOST_DIMENSIONS:,} dimensions are "
            f"not supported, got {p}"
        )
    dtype = float_result(self.dtype)
    if dtype.is_complex:
        raise not_implemented("arange_cpu", dtype)
    total = F.lgamma(self)
    for shift in range(1, p):
        total = total + F.lgamma(self - shift / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def mvlgamma_(self: Tensor, p: int) -> Tensor:
    _check_no_mask(self)
    _check_written(self)
    return self.copy_(F.mvlgamma(overwritten(self), p))


def _check_no_mask(self: Tensor) -> None:
    if self.dtype is bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")


def _check_written(self: Tensor) -> None:
    dtype = float_result(self.dtype)
    if dtype is not self.dtype:
        raise RuntimeError(
            f"result type {dtype.scalar_name} can't be cast to the desired output type "
            f"{self.dtype.scalar_name}"
        )


def erfinv(self: Tensor) -> TensorBase:
    return _of_one("erfinv", "erfinv_vml_cpu", self)


def igamma(self: Tensor, other: Tensor) -> TensorBase:
    return _of_two("igamma", self, other)


def igammac(self: Tensor, other: Tensor) -> TensorBase:
    return _of_two("igammac", self, other)


def i0(self: Tensor) -> TensorBase:
    return _of_one("i0", "i0_vml_cpu", self)


def special_i1(self: Tensor) -> TensorBase:
    return _of_one("i1", "i1_cpu", self)
