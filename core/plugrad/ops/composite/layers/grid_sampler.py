"""Reads images and volumes at the positions of a grid, and makes the grids of affine maps.

Everything is composed of differentiable operators: positions become row numbers of a table of all
pixels, and the gradient toward the grid goes through the weights. As in PyTorch, positions are in
the dtype of the grid, 16-bit ones too.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import itertools
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import int64
from plugrad.ops.composite.selection.positions import check_device
from plugrad.ops.composite.views import temporary_in_shape
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
# The parameter of the cubic kernel, as in `upsample_bicubic2d`.
_A: Final = -0.75


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    _check(input, grid)
    spatial = input.ndim - 2
    if spatial not in (2, 3):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {list(sizes_of(input))} and grid with sizes "
            f"{list(sizes_of(grid))}"
        )
    if spatial == 3:
        if interpolation_mode == BICUBIC:
            raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
        return F.grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners)
    return F.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    _check(input, grid, 2)
    return _sampled(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    _check(input, grid, 3)
    if interpolation_mode == BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _sampled(input, grid, interpolation_mode, padding_mode, align_corners)


def _check(input: TensorBase, grid: TensorBase, spatial: int | None = None) -> None:
    shape, places = sizes_of(input), sizes_of(grid)
    check_device(grid, input)
    both = f"but got input with sizes {list(shape)} and grid with sizes {list(places)}"
    if spatial is not None and (len(shape) != spatial + 2 or len(places) != spatial + 2):
        raise RuntimeError(
            f"grid_sampler(): expected {spatial + 2}D input and grid with same number of "
            f"dimensions, {both}"
        )
    if not shape or not places or shape[0] != places[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, {both}"
        )
    if places[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but "
            f"got grid with sizes {list(places)}"
        )
    for dim, size in enumerate(shape[2:], 2):
        if size <= 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(shape)} with dimension {dim} being empty"
            )
    if len(shape) != len(places):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, "
            f"{both}"
        )
    if not input.dtype.is_floating_point:
        raise not_implemented("grid_sampler_2d_cpu_kernel_impl", input.dtype)
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have the dtype of input, "
            f"{input.dtype.scalar_name}, but got {grid.dtype.scalar_name}"
        )


def check_modes(mode: int, padding: int) -> None:
    if mode not in (BILINEAR, NEAREST, BICUBIC):
        raise RuntimeError(
            f"grid_sampler(): expected interpolation_mode to be 0, 1 or 2, but got {mode}"
        )
    if padding not in (ZEROS, BORDER, REFLECTION):
        raise RuntimeError(
            f"grid_sampler(): expected padding_mode to be 0, 1 or 2, but got {padding}"
        )


class _Table:
    """All pixels of a batch as rows (N * pixels, C), read by their places.

    `where` and the other tensors of places have shape (N, places of the grid).
    """

    def __init__(self, input: Tensor) -> None:
        sizes = sizes_of(input)
        self.sizes = sizes[2:]
        self.channels = sizes[1]
        channels_last = (0, *range(2, len(sizes)), 1)
        count = sizes[0] * math.prod(self.sizes)
        self.rows = input.permute(channels_last).reshape((count, self.channels))
        starts = F.arange(sizes[0], dtype=int64, device=input.device)
        self.starts: Any = (starts * math.prod(self.sizes)).unsqueeze(1)

    def read(self, places: list[Any], weight: Any) -> Tensor:
        """Pixels at whole places, one tensor for each dimension, times weights; zero outside."""
        inside: Any = None
        for place, size in zip(places, self.sizes, strict=True):
            found = (place >= 0) & (place < size)
            inside = found if inside is None else inside & found
        index: Any = 0
        for place, size in zip(places, self.sizes, strict=True):
            index = index * size + F._to_copy(F.where(inside, place, 0.0), int64)
        flat = (index + self.starts).reshape((-1,))
        read: Any = self.rows.index_select(0, flat)
        # Where no pixel is read, the weight may be nan.
        factor = inside if weight is None else F.where(inside, weight, 0.0)
        return read * F._to_copy(factor, read.dtype).reshape((-1, 1))


def _sampled(input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    check_modes(mode, padding)
    batch, *out = sizes_of(grid)[:-1]
    table = _Table(input)
    count = math.prod(out)
    flat = grid.reshape((batch, count, len(out)))
    places = [
        _unnormalised(flat.select(2, len(out) - 1 - dim), size, align_corners)
        for dim, size in enumerate(table.sizes)
    ]
    if mode != BICUBIC:
        places = [
            _padded(place, size, padding, align_corners)
            for place, size in zip(places, table.sizes, strict=True)
        ]
    if mode == BILINEAR:
        rows = _bilinear(table, places)
    elif mode == NEAREST:
        # The gradient toward the grid is zero, but there is one.
        linked = sum(F.where(place != place, place * 0.0, 0.0) for place in places)
        rows = table.read([F.round(place.detach()) for place in places], 1.0 + linked)
    else:
        rows = _bicubic(table, places, padding, align_corners)
    channels_second = (0, len(out) + 1, *range(1, len(out) + 1))
    shaped = rows.reshape((batch, *out, table.channels)).permute(channels_second)
    return temporary_in_shape(shaped.contiguous(), sizes_of(shaped))


def _bilinear(table: _Table, places: list[Any]) -> Tensor:
    lower = [F.floor(place.detach()) for place in places]
    parts = [place - floor for place, floor in zip(places, lower, strict=True)]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(places)):
        weight: Any = None
        for part, upper in zip(parts, corner, strict=True):
            factor = part if upper else 1 - part
            weight = factor if weight is None else weight * factor
        at = [floor + upper for floor, upper in zip(lower, corner, strict=True)]
        read = table.read(at, weight)
        total = read if total is None else total + read
    return total


def _bicubic(table: _Table, places: list[Any], padding: int, align_corners: bool) -> Tensor:
    lower = [F.floor(place.detach()) for place in places]
    weights = [_cubic_weights(place - floor) for place, floor in zip(places, lower, strict=True)]
    total: Any = None
    for taps in itertools.product(range(4), repeat=len(places)):
        weight: Any = None
        for dim, tap in enumerate(taps):
            factor = weights[dim][tap]
            weight = factor if weight is None else weight * factor
        at = [
            # Reflection at the edges between pixels gives fractions, which count downward.
            F.floor(_padded(lower[dim] + (tap - 1), table.sizes[dim], padding, align_corners))
            for dim, tap in enumerate(taps)
        ]
        read = table.read(at, weight)
        total = read if total is None else total + read
    return total


def _cubic_weights(t: Any) -> list[Any]:
    """The weights of the four neighbours of a place that is t behind the second one."""
    u = 1 - t
    return [
        ((_A * (t + 1) - 5 * _A) * (t + 1) + 8 * _A) * (t + 1) - 4 * _A,
        ((_A + 2) * t - (_A + 3)) * t * t + 1,
        ((_A + 2) * u - (_A + 3)) * u * u + 1,
        ((_A * (u + 1) - 5 * _A) * (u + 1) + 8 * _A) * (u + 1) - 4 * _A,
    ]


def _unnormalised(x: Any, size: int, align_corners: bool) -> Any:
    """From [-1, 1] to numbers of pixels."""
    if align_corners:
        return (x + 1) * ((size - 1) / 2)
    return (x + 1) * (size / 2) - 0.5


def _padded(x: Any, size: int, padding: int, align_corners: bool) -> Any:
    if padding == ZEROS:
        return x
    if padding == REFLECTION:
        x = _reflected(x, size, align_corners)
    # At the ends themselves the gradient is zero, as PyTorch's is.
    inside = (x > 0) & (x < size - 1)
    return F.where(inside, x, F.clamp(x.detach(), 0, size - 1))


def _reflected(x: Any, size: int, align_corners: bool) -> Any:
    low = 0.0 if align_corners else -0.5
    span = float(size - 1 if align_corners else size)
    if span == 0:
        return F.where(x != x, x, 0.0)
    shifted = x - low
    away = F.where(shifted < 0, -shifted, shifted)
    extra = F.fmod(away, span)
    flips = F.floor(away.detach() / span)
    return F.where(F.fmod(flips, 2.0) == 0, extra + low, span - extra + low)


def affine_grid_generator(theta: Tensor, size: Ints, align_corners: bool) -> Tensor:
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    spatial = len(size) - 2
    if sizes_of(theta)[1:] != (spatial, spatial + 1) or theta.ndim != 3:
        raise RuntimeError(
            f"Expected a batch of affine matrices of shape Nx{spatial}x{spatial + 1} for size "
            f"{list(size)}, but got theta of shape {list(sizes_of(theta))}"
        )
    sizes = [size[0], *size[2:], spatial + 1]
    if min(sizes) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    out = size[2:]
    columns: list[Any] = []
    # First x, the place along the last dimension.
    for dim in reversed(range(spatial)):
        line = _line(out[dim], theta, align_corners)
        shape = [1] * spatial
        shape[dim] = out[dim]
        columns.append(line.reshape(tuple(shape)).expand(out))
    columns.append(F.ones(out, dtype=theta.dtype, device=theta.device))
    base = F.stack(columns, -1).reshape((1, math.prod(out), spatial + 1))
    places = F.bmm(base.expand((size[0], *sizes_of(base)[1:])), theta.transpose(1, 2))
    return temporary_in_shape(places, (size[0], *out, spatial))


def _line(count: int, theta: Tensor, align_corners: bool) -> Tensor:
    """From -1 to 1: the outermost centers, or edges, of elements."""
    if count <= 1:
        return F.zeros((count,), dtype=theta.dtype, device=theta.device)
    line: Any = F.linspace(-1, 1, count, dtype=theta.dtype, device=theta.device)
    if align_corners:
        return line
    return F._to_copy(line * (count - 1) / count, theta.dtype)
