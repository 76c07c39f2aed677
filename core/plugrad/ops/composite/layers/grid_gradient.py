"""The gradients of reading images and volumes at the places of a grid, in closed form.

The gradient of each pixel is its weight; the gradient of a place is the derivative of the weights,
times the derivative of the place with respect to the grid.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import itertools
import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import int64
from plugrad.ops.composite.layers.grid_sampler import (
    _A,
    BICUBIC,
    BILINEAR,
    NEAREST,
    REFLECTION,
    ZEROS,
    _check,
    _cubic_weights,
    _padded,
    _unnormalised,
    check_modes,
)
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Pair = tuple[Any, Any]


def grid_sampler_2d_backward(grad_output: Tensor, input: Tensor, grid: Tensor, *how: Any) -> Pair:
    return _backward(2, grad_output, input, grid, *how)


def grid_sampler_3d_backward(grad_output: Tensor, input: Tensor, grid: Tensor, *how: Any) -> Pair:
    if how[0] == BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _backward(3, grad_output, input, grid, *how)


def _backward(
    spatial: int,
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    mode: int,
    padding: int,
    align_corners: bool,
    output_mask: Any,
) -> Pair:
    _check(input, grid, spatial)
    check_modes(mode, padding)
    batch, *out = sizes_of(grid)[:-1]
    channels, sizes = sizes_of(input)[1], sizes_of(input)[2:]
    wanted = (batch, channels, *out)
    if sizes_of(grad_output) != wanted:
        raise RuntimeError(
            f"grid_sampler_{spatial}d_backward: Expected grad_output of shape {list(wanted)}, but "
            f"got {list(sizes_of(grad_output))}"
        )
    count, pixels = math.prod(out), math.prod(sizes)
    last = (0, *range(2, spatial + 2), 1)
    rows: Any = input.permute(last).reshape((batch * pixels, channels))
    grads: Any = grad_output.permute(last).reshape((batch * count, channels))
    starts: Any = F.arange(batch, dtype=int64, device=input.device).unsqueeze(1) * pixels
    flat = grid.reshape((batch, count, spatial))
    places, speeds = [], []
    for dim, size in enumerate(sizes):
        place = _unnormalised(flat.select(2, spatial - 1 - dim), size, align_corners)
        speed: Any = (size - 1) / 2 if align_corners else size / 2
        if mode != BICUBIC:
            speed = speed * _slope(place, size, padding, align_corners)
            place = _padded(place, size, padding, align_corners)
        places.append(place)
        speeds.append(speed)
    of_rows: Any = F.zeros_like(rows)
    of_places: list[Any] = [F.zeros_like(place) for place in places]
    for at, weight, changes in _taps(places, sizes, mode, padding, align_corners):
        inside, index = _index(at, sizes)
        numbers = (index + starts).reshape((-1,))
        counted: Any = F._to_copy(F.where(inside, weight, 0.0), grads.dtype).reshape((-1, 1))
        of_rows = F.index_add(of_rows, 0, numbers, grads * counted)
        if changes:
            read = F.sum(grads * rows.index_select(0, numbers), 1).reshape((batch, count))
            read = F.where(inside, read, 0.0)
            of_places = [a + read * b for a, b in zip(of_places, changes, strict=True)]
    first = of_rows.reshape((batch, *sizes, channels))
    first = F.clone(first.permute((0, spatial + 1, *range(1, spatial + 1))).contiguous())
    moved = [a * b for a, b in zip(of_places, speeds, strict=True)]
    second = F._unsafe_view(F.stack(moved[::-1], 2), sizes_of(grid))
    return first if output_mask[0] else None, second


def _taps(places: list[Any], sizes: Any, mode: int, padding: int, align_corners: bool) -> Any:
    """For each pixel that a place reads: its position, its weight, and the derivative of the weight
    as the place moves along each dimension; no derivatives for the nearest pixel."""
    if mode == NEAREST:
        yield [F.round(place) for place in places], 1.0, []
        return
    lower = [F.floor(place) for place in places]
    parts = [place - floor for place, floor in zip(places, lower, strict=True)]
    if mode == BILINEAR:
        weights = [[1 - part, part] for part in parts]
        slopes = [[F.full_like(part, -1.0), F.ones_like(part)] for part in parts]
    else:
        weights = [_cubic_weights(part) for part in parts]
        slopes = [_cubic_slopes(part) for part in parts]
    for taps in itertools.product(range(len(weights[0])), repeat=len(places)):
        at = [
            lower[dim] + tap
            if mode == BILINEAR
            else F.floor(_padded(lower[dim] + (tap - 1), sizes[dim], padding, align_corners))
            for dim, tap in enumerate(taps)
        ]
        chosen = [weights[dim][tap] for dim, tap in enumerate(taps)]
        changes = [
            math.prod([*chosen[:dim], *chosen[dim + 1 :]], start=slopes[dim][tap])
            for dim, tap in enumerate(taps)
        ]
        yield at, math.prod(chosen), changes


def _cubic_slopes(t: Any) -> list[Any]:
    """The derivatives of `_cubic_weights`."""
    u = 1 - t
    return [
        (3 * _A * (t + 1) - 10 * _A) * (t + 1) + 8 * _A,
        (3 * (_A + 2) * t - 2 * (_A + 3)) * t,
        -(3 * (_A + 2) * u - 2 * (_A + 3)) * u,
        -((3 * _A * (u + 1) - 10 * _A) * (u + 1) + 8 * _A),
    ]


def _index(at: list[Any], sizes: Any) -> tuple[Any, Any]:
    """Whether whole places are in the image, and the number of the pixel there, or of the first."""
    inside: Any = None
    for place, size in zip(at, sizes, strict=True):
        found = (place >= 0) & (place < size)
        inside = found if inside is None else inside & found
    index: Any = 0
    for place, size in zip(at, sizes, strict=True):
        index = index * size + F._to_copy(F.where(inside, place, 0.0), int64)
    return inside, index


def _slope(place: Any, size: int, padding: int, align_corners: bool) -> Any:
    """How fast a place moves that is padded: backward where it is reflected, not at the border."""
    if padding == ZEROS:
        return 1.0
    sign: Any = F.ones_like(place)
    if padding == REFLECTION:
        low = 0.0 if align_corners else -0.5
        span = float(size - 1 if align_corners else size)
        if span == 0:
            return F.zeros_like(place)
        shifted = place - low
        flips = F.fmod(F.floor(F.abs(shifted) / span), 2.0)
        sign = F.where((shifted < 0) == (flips == 0), -1.0, sign)
        away = F.fmod(F.abs(shifted), span)
        place = F.where(flips == 0, away + low, span - away + low)
    return F.where((place > 0) & (place < size - 1), sign, 0.0)
