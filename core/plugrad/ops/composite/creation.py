"""Factory functions that follow a tensor, and random ones made of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dtype import DType, int64
from plugrad.ops.prepare.creation import check_std
from plugrad.ops.prepare.views import check_geometry
from plugrad.tensor.base import sizes_of
from plugrad.tensor.kernels import broadcast_shapes

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def empty_strided(size: Sizes, stride: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    check_geometry(size, stride, 0)
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
    self: Tensor, dtype: DType | None, device: Device | None, memory_format: object
) -> Tensor:
    return F.empty(sizes_of(self), **_like(self, dtype, device))


def zeros_like(
    self: Tensor, dtype: DType | None, device: Device | None, memory_format: object
) -> Tensor:
    return F.zeros(sizes_of(self), **_like(self, dtype, device))


def ones_like(
    self: Tensor, dtype: DType | None, device: Device | None, memory_format: object
) -> Tensor:
    return F.ones(sizes_of(self), **_like(self, dtype, device))


def full_like(
    self: Tensor,
    fill_value: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: object,
) -> Tensor:
    return F.full(sizes_of(self), fill_value, **_like(self, dtype, device))


def new_empty(self: Tensor, size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    return F.empty(size, **_like(self, dtype, device))


def new_zeros(self: Tensor, size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    return F.zeros(size, **_like(self, dtype, device))


def new_ones(self: Tensor, size: Sizes, dtype: DType | None, device: Device | None) -> Tensor:
    return F.ones(size, **_like(self, dtype, device))


def new_full(
    self: Tensor, size: Sizes, fill_value: object, dtype: DType | None, device: Device | None
) -> Tensor:
    return F.full(size, fill_value, **_like(self, dtype, device))


def rand_like(
    self: Tensor,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: object,
) -> Tensor:
    return F.rand(sizes_of(self), generator=generator, **_like(self, dtype, device))


def randn_like(
    self: Tensor,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: object,
) -> Tensor:
    return F.randn(sizes_of(self), generator=generator, **_like(self, dtype, device))


def randint_like(
    self: Tensor,
    low: int,
    high: int,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: object,
) -> Tensor:
    made: Tensor = F.randint(
        low, high, sizes_of(self), generator=generator, **_like(self, dtype, device)
    )
    return made


def randint_like_high(
    self: Tensor,
    high: int,
    generator: object,
    dtype: DType | None,
    device: Device | None,
    memory_format: object,
) -> Tensor:
    return randint_like(self, 0, high, generator, dtype, device, memory_format)


def normal(mean: Tensor, std: Tensor, generator: object) -> Tensor:
    if bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = broadcast_shapes(sizes_of(mean), sizes_of(std))
    noise = F.randn(shape, generator=generator, dtype=mean.dtype, device=mean.device)
    moved: Tensor = (noise * std.detach() + mean.detach()).to(mean.dtype)
    return moved


def normal_float_std(mean: Tensor, std: float, generator: object) -> Tensor:
    check_std(std)
    noise = F.randn(sizes_of(mean), generator=generator, dtype=mean.dtype, device=mean.device)
    moved: Tensor = noise * std + mean.detach()
    return moved


def normal_float_mean(mean: float, std: Tensor, generator: object) -> Tensor:
    if bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    noise = F.randn(sizes_of(std), generator=generator, dtype=std.dtype, device=std.device)
    moved: Tensor = noise * std.detach() + mean
    return moved


def normal_size(
    mean: float,
    std: float,
    size: Sizes,
    generator: object,
    dtype: DType | None,
    device: Device | None,
) -> Tensor:
    check_std(std)
    noise = F.randn(size, generator=generator, dtype=dtype, device=device)
    moved: Tensor = noise * std + mean
    return moved


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
