"""Factory functions that follow a tensor or are built on the host, and random ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dispatch.backends.active import canonical_device
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dtype import BOOL, INTEGER, DType, get_default_dtype, int64
from plugrad.memory_format import MemoryFormat
from plugrad.ops.composite.arrangement.memory_formats import in_order, permuted
from plugrad.ops.composite.elementwise.complex_parts import complex_of_parts as complex_of_parts
from plugrad.ops.composite.random import bernoulli as bernoulli
from plugrad.ops.composite.random import bernoulli_float_ as bernoulli_float_
from plugrad.ops.composite.random import bernoulli_tensor_ as bernoulli_tensor_
from plugrad.ops.composite.random import exponential_ as exponential_
from plugrad.ops.composite.random import multinomial as multinomial
from plugrad.ops.composite.random import normal_ as normal_
from plugrad.ops.composite.random import rand as rand
from plugrad.ops.composite.random import randint as randint
from plugrad.ops.composite.random import randint_high as randint_high
from plugrad.ops.composite.random import randn as randn
from plugrad.ops.composite.random import random_ as random_
from plugrad.ops.composite.random import random_from_ as random_from_
from plugrad.ops.composite.random import random_to_ as random_to_
from plugrad.ops.composite.random import randperm as randperm
from plugrad.ops.composite.random import uniform_ as uniform_
from plugrad.ops.prepare import creation as prepare
from plugrad.ops.prepare.memory_formats import order_like
from plugrad.ops.prepare.views import check_geometry
from plugrad.tensor.aliasing.strides import contiguous_strides
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.creation.spacing import spaced, triangle
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def _moved(numbers: Any, dtype: DType, device: Device | None) -> TensorBase:
    """A host array in a dtype, on a device of a backend that cannot make it there."""
    with np.errstate(all="ignore"):
        host = numbers.astype(dtype.numpy)
    return from_host(host, dtype, canonical_device(device))


def empty(
    size: Sizes,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    if prepare.empty(size, dtype, device, memory_format) is DECLINED:
        assert memory_format is not None
        order = memory_format.order
        return in_order(F.empty(permuted(size, order), dtype=dtype, device=device), order)
    return F.zeros(size, dtype=dtype, device=device)


def zeros(size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    checked: Any = prepare.zeros(size, dtype, device)
    return F.full(size, 0, dtype=checked[1], device=device)


def ones(size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    checked: Any = prepare.ones(size, dtype, device)
    return F.full(size, 1, dtype=checked[1], device=device)


def full(size: Sizes, fill_value: Any, dtype: DType | None, device: Device | None) -> TensorBase:
    checked: Any = prepare.full(size, fill_value, dtype, device)
    kind: DType = checked[2]
    if isinstance(fill_value, complex) and not kind.is_complex:
        fill_value = fill_value.real
    return _moved(np.broadcast_to(np.array(fill_value), size), kind, device)


def arange(
    start: Any, end: Any, step: Any, dtype: DType | None, device: Device | None
) -> TensorBase:
    checked: Any = prepare.arange(start, end, step, dtype, device)
    first, by, count, kind, _ = checked
    exact = isinstance(first, int) and isinstance(by, int)
    places: Any = np.arange(count, dtype=np.int64 if exact else np.float64)
    return _moved(first + by * places, kind, device)


def range_by_arange(
    start: Any, end: Any, step: Any, dtype: DType | None, device: Device | None
) -> TensorBase:
    kind = get_default_dtype() if dtype is None else dtype
    if kind.category == BOOL or kind.is_complex:
        raise not_implemented("range_cpu", kind)
    prepare.arange(start, end, step, kind, device)
    first, last, by = start, end, step
    if kind.category == INTEGER:
        first, last, by = int(start), int(end), int(step)
        if by == 0:
            raise RuntimeError("step must be nonzero")
    steps = math.floor((last - first) / by)
    # Whole numbers end exactly, others half a step behind the last.
    whole = isinstance(first, int) and isinstance(by, int)
    behind = first + by * (steps + 1 if whole else steps + 0.5)
    result: TensorBase = F.arange(first, behind, by, dtype=kind, device=device)
    return result


def linspace(
    start: Any, end: Any, steps: int, dtype: DType | None, device: Device | None
) -> TensorBase:
    checked: Any = prepare.linspace(start, end, steps, dtype, device)
    whole = not checked[3].is_differentiable
    return _moved(spaced(np, start, end, steps, whole), checked[3], device)


def logspace(
    start: Any, end: Any, steps: int, base: float, dtype: DType | None, device: Device | None
) -> TensorBase:
    checked: Any = prepare.logspace(start, end, steps, base, dtype, device)
    powers: Any = np.power(base, spaced(np, start, end, steps, not checked[4].is_differentiable))
    return _moved(powers, checked[4], device)


def eye(n: int, m: int | None, dtype: DType | None, device: Device | None) -> TensorBase:
    checked: Any = prepare.eye(n, m, dtype, device)
    return _moved(np.eye(checked[0], checked[1]), checked[2], device)


def tril_indices(
    row: int, col: int, offset: int, dtype: DType | None, device: Device | None
) -> TensorBase:
    checked: Any = prepare.tril_indices(row, col, offset, dtype, device)
    return _moved(triangle(np, row, col, offset, False), checked[3], device)


def triu_indices(
    row: int, col: int, offset: int, dtype: DType | None, device: Device | None
) -> TensorBase:
    checked: Any = prepare.triu_indices(row, col, offset, dtype, device)
    return _moved(triangle(np, row, col, offset, True), checked[3], device)


def fill_with_number(self: Tensor, value: Any) -> Tensor:
    prepare.fill_scalar(self, value)
    return self.copy_(F.full(sizes_of(self), value, dtype=self.dtype, device=self.device))


def fill_with_tensor(self: Tensor, value: Tensor) -> Tensor:
    prepare.fill_tensor(self, value)
    return self.copy_(value)


def empty_strided(size: Sizes, stride: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    check_geometry(size, stride, 0)
    if stride == contiguous_strides(size):
        return F.empty(size, dtype=dtype, device=device)
    reach = 0
    if 0 not in size:
        reach = 1 + sum([(n - 1) * step for n, step in zip(size, stride, strict=True)])
    memory = F.empty((reach,), dtype=dtype, device=device)
    return memory.as_strided(size, stride).detach()


def _like(self: Tensor, dtype: DType | None, device: Device | None) -> dict[str, Any]:
    return {
        "dtype": self.dtype if dtype is None else dtype,
        "device": self.device if device is None else device,
    }


def empty_like(
    self: Tensor, dtype: DType | None, device: Device | None, memory_format: MemoryFormat | None
) -> Tensor:
    order = order_like(self, memory_format)
    sizes = permuted(sizes_of(self), order)
    return in_order(C.call_empty(sizes, dtype or self.dtype, device or self.device), order)


def zeros_like(
    self: Tensor, dtype: DType | None, device: Device | None, memory_format: MemoryFormat | None
) -> Tensor:
    order = order_like(self, memory_format)
    sizes = permuted(sizes_of(self), order)
    return in_order(C.call_zeros(sizes, dtype or self.dtype, device or self.device), order)


def ones_like(
    self: Tensor, dtype: DType | None, device: Device | None, memory_format: MemoryFormat | None
) -> Tensor:
    order = order_like(self, memory_format)
    sizes = permuted(sizes_of(self), order)
    return in_order(C.call_ones(sizes, dtype or self.dtype, device or self.device), order)


def full_like(
    self: Tensor,
    fill_value: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    order = order_like(self, memory_format)
    sizes = permuted(sizes_of(self), order)
    made = C.call_full(sizes, fill_value, dtype or self.dtype, device or self.device)
    return in_order(made, order)


def new_empty(self: Tensor, size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    return C.call_empty(size, dtype or self.dtype, device or self.device)


def new_zeros(self: Tensor, size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    return C.call_zeros(size, dtype or self.dtype, device or self.device)


def new_ones(self: Tensor, size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    return C.call_ones(size, dtype or self.dtype, device or self.device)


def new_full(
    self: Tensor, size: Sizes, fill_value: object, dtype: DType | None, device: Device | None
) -> Tensor:
    return C.call_full(size, fill_value, dtype or self.dtype, device or self.device)


def rand_like(
    self: Tensor,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    order = order_like(self, memory_format)
    sizes = permuted(sizes_of(self), order)
    return in_order(F.rand(sizes, generator=generator, **_like(self, dtype, device)), order)


def randn_like(
    self: Tensor,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    order = order_like(self, memory_format)
    if order is None:
        return F.randn(sizes_of(self), generator=generator, **_like(self, dtype, device))
    # PyTorch draws otherwise for memory that is not contiguous.
    made: Tensor = in_order(
        F.empty(permuted(sizes_of(self), order), **_like(self, dtype, device)), order
    )
    return made.normal_(generator=generator)


def randint_like(
    self: Tensor,
    low: int,
    high: int,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    order = order_like(self, memory_format)
    made: Tensor = F.randint(
        low,
        high,
        permuted(sizes_of(self), order),
        generator=generator,
        **_like(self, dtype, device),
    )
    return in_order(made, order)


def randint_like_high(
    self: Tensor,
    high: int,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    return randint_like(self, 0, high, generator, dtype, device, memory_format)


def _check_stds(std: Tensor) -> None:
    if std.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.device.type != "meta" and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")


def normal(mean: Tensor, std: Tensor, generator: object) -> Tensor:
    _check_stds(std)
    shape = broadcast_shapes(sizes_of(mean), sizes_of(std))
    noise = F.randn(shape, generator=generator, dtype=mean.dtype, device=mean.device)
    moved: Tensor = (noise.mul_(std.detach())).add_(mean.detach())
    return moved


def normal_float_std(mean: Tensor, std: float, generator: object) -> Tensor:
    noise = F.normal(
        0.0, std, sizes_of(mean), generator=generator, dtype=mean.dtype, device=mean.device
    )
    moved: Tensor = noise.add_(mean.detach())
    return moved


def normal_float_mean(mean: float, std: Tensor, generator: object) -> Tensor:
    _check_stds(std)
    noise = F.randn(sizes_of(std), generator=generator, dtype=std.dtype, device=std.device)
    moved: Tensor = noise.mul_(std.detach()).add_(mean)
    return moved


def normal_size(
    mean: float,
    std: float,
    size: Sizes,
    generator: object,
    dtype: DType | None,
    device: Device | None,
) -> Tensor:
    made: Tensor = F.empty(size, dtype=dtype, device=device).normal_(mean, std, generator=generator)
    return made


def bernoulli_p(self: Tensor, p: float, generator: object) -> Tensor:
    drawn: Tensor = F.empty_like(self).bernoulli_(p, generator=generator)
    return drawn


def zero_(self: Tensor) -> Tensor:
    return self.fill_(0)


def fill_diagonal_(self: Tensor, fill_value: object, wrap: bool) -> Tensor:
    sizes = sizes_of(self)
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(sizes) > 2 and len(set(sizes)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    length = min(sizes)
    index = F.arange(length, dtype=int64, device=self.device)
    value = F.full((), fill_value, dtype=self.dtype, device=self.device)
    self.index_put_([index] * len(sizes), value)
    if wrap and len(sizes) == 2 and sizes[0] > sizes[1]:
        columns = sizes[1]
        rows = F.arange(columns + 1, sizes[0], 1, dtype=int64, device=self.device)
        place = rows.remainder(columns + 1)
        keep = place < columns
        self.index_put_([rows.masked_select(keep), place.masked_select(keep)], value)
    return self
