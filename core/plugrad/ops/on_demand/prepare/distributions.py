"""Arguments of operators that draw from distributions: dtypes and ranges of parameters."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import BOOL, FLOATING, DType, float32, float64
from plugrad.ops.prepare.creation import number_text
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.cpp_names import CPP_NAMES

Prepared = tuple[object, ...]


def cauchy_(self: TensorBase, median: float, sigma: float, generator: object) -> Prepared:
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={number_text(sigma)}")
    if self.dtype.category != FLOATING:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {CPP_NAMES[self.dtype.name]}"
        )
    return (self, median, sigma, generator)


def log_normal_(self: TensorBase, mean: float, std: float, generator: object) -> Prepared:
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={number_text(std)}")
    if self.dtype.category != FLOATING and self.numel():
        raise not_implemented("log_normal_cpu", self.dtype)
    return (self, mean, std, generator)


def geometric_(self: TensorBase, p: float, generator: object) -> Prepared:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={number_text(p)}")
    if (self.dtype.is_complex or self.dtype.category == BOOL) and self.numel():
        raise not_implemented("geometric_cpu", self.dtype)
    return (self, p, generator)


def poisson(self: TensorBase, generator: object) -> Prepared:
    if self.dtype.category != FLOATING:
        raise not_implemented("poisson_cpu", self.dtype)
    return (self, generator)


def _check_native(dtype: DType, kernel: str) -> None:
    if dtype is not float32 and dtype is not float64:
        raise not_implemented(kernel, dtype)


def _check_same(first: TensorBase, *others: TensorBase) -> None:
    for other in others:
        if other.dtype is not first.dtype:
            raise RuntimeError(
                f"Found dtype {other.dtype.scalar_name} but expected {first.dtype.scalar_name}"
            )


def _broadcast(*tensors: Any) -> tuple[Any, ...]:
    """Tensors in the shape that they have together."""
    shape = sizes_of(tensors[0])
    for tensor in tensors[1:]:
        shape = broadcast_shapes(shape, sizes_of(tensor))
    return tuple(
        tensor if sizes_of(tensor) == shape else tensor.expand(shape) for tensor in tensors
    )


def binomial(count: TensorBase, prob: TensorBase, generator: object) -> Prepared:
    for name, tensor in (("count", count), ("prob", prob)):
        if tensor.dtype.category != FLOATING:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{tensor.dtype.scalar_name}"
            )
    _check_same(count, prob)
    _check_native(count.dtype, "binomial_cpu")
    return (*_broadcast(count, prob), generator)


def standard_gamma(self: TensorBase, generator: object) -> Prepared:
    _check_native(self.dtype, "gamma_cpu")
    return (self, generator)


def standard_gamma_grad(self: TensorBase, output: TensorBase) -> Prepared:
    _check_same(self, output)
    _check_native(self.dtype, "_standard_gamma_grad_cpu")
    return (self, output)


def sample_dirichlet(self: TensorBase, generator: object) -> Prepared:
    _check_native(self.dtype, "dirichlet")
    return (self, generator)


def dirichlet_grad(x: TensorBase, alpha: TensorBase, total: TensorBase) -> Prepared:
    _check_same(x, alpha, total)
    _check_native(x.dtype, "_dirichlet_grad_cpu")
    return (x, alpha, total)
