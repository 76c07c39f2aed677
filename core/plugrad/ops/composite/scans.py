"""Products, cumulative sums and cumulative products of many elements, by halving."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import DType
from plugrad.ops.composite.elementwise.precision import widest
from plugrad.ops.prepare import reductions as prepare
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.promotion import to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def prod(self: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Any:
    """The first half times the second, until one element is left."""
    checked: Any = prepare.prod(self, dim, keepdim, dtype)
    operand, dims, _, kind = checked
    sizes = sizes_of(self)
    kept = [i for i in range(len(sizes)) if i not in dims]
    x: Any = to_dtype(operand, widest(kind))
    x = x.permute((*kept, *dims))
    count = 1
    for i in dims:
        count *= sizes[i]
    x = x.reshape((*[sizes[i] for i in kept], count))
    if count == 0:
        x = F.ones(tuple([sizes[i] for i in kept]), dtype=kind, device=self.device).unsqueeze(-1)
        count = 1
    while count > 1:
        half = count // 2
        product = F.narrow(x, -1, 0, half) * F.narrow(x, -1, half, half)
        if count % 2 == 1:
            product = F.cat([product, F.narrow(x, -1, 2 * half, 1)], -1)
        x = product
        count -= half
    shape = [1 if i in dims else sizes[i] for i in range(len(sizes)) if keepdim or i not in dims]
    return to_dtype(x.reshape(tuple(shape)), kind)


def cumsum(self: Tensor, dim: int, dtype: DType | None) -> Any:
    return _running(prepare.cumsum(self, dim, dtype), F.add)


def cumprod(self: Tensor, dim: int, dtype: DType | None) -> Any:
    return _running(prepare.cumprod(self, dim, dtype), F.mul)


def _running(checked: Any, combine: Callable[..., Any]) -> Any:
    """After n rounds each element combines the 2 ** n elements that end at it.

    Source: W. D. Hillis and G. L. Steele, Data Parallel Algorithms, 1986.
    """
    operand, place, kind = checked
    x: Any = to_dtype(operand, widest(kind))
    if x.ndim == 0:
        return to_dtype(x.clone(), kind)
    size = sizes_of(x)[place]
    step = 1
    while step < size:
        rest = size - step
        later = combine(F.narrow(x, place, step, rest), F.narrow(x, place, 0, rest))
        x = F.cat([F.narrow(x, place, 0, step), later], place)
        step *= 2
    return to_dtype(x.clone() if step == 1 else x, kind)
