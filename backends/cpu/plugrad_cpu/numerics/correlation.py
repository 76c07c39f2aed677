"""Convolutions by compiled loops: the memory layout of the padded copy, and the vectors that read
it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np

from plugrad_cpu.numerics.threads import in_parts, thread_count

Array = Any
Ints = tuple[int, ...]

# Positions that go through a scratch at a time: with all filters they are to fit into the cache.
_BAND: Final = 1024
# Images of so few positions do not fill vectors, but so many of them do.
_SMALL: Final = 99
_BATCH: Final = 8
# So many positions pay for reading all filters.
_POSITIONS: Final = 128
# Bytes of the copies of samples and their gradients.
_SAMPLES: Final = 1 << 19
# Products that a thread is to have.
_PART: Final = 1 << 22
# Parts of the samples for each thread, and elements of the copies that are made for them.
_PARTS: Final = 4
_COPIES: Final = 1 << 17


def _three(numbers: Iterable[int], filler: int) -> Ints:
    found = tuple(numbers)
    return (filler,) * (3 - len(found)) + found


@dataclass(frozen=True)
class Correlation:
    """Sums of products with windows, in three dimensions.

    Attributes:
        sizes: of the input; out: of the result.
        low: the padding in front; where it is negative, as much of the input is not read.
    """

    sizes: Ints
    out: Ints
    kernel: Ints
    stride: Ints
    low: Ints
    dilation: Ints

    @classmethod
    def of(cls, windows: Any) -> Self:
        return cls(
            _three(windows.sizes, 1),
            _three(windows.out, 1),
            _three(windows.kernel, 1),
            _three(windows.stride, 1),
            _three(windows.padding, 0),
            _three(windows.dilation, 1),
        )

    @property
    def reach(self) -> Ints:
        """How much of the padded input is read."""
        return tuple(
            (out - 1) * s + (k - 1) * d + 1
            for out, s, k, d in zip(self.out, self.stride, self.kernel, self.dilation, strict=True)
        )

    @property
    def cells(self) -> Ints:
        """Sizes of the copy; each of its planes has every element that a stride leads to."""
        depth, *plane = self.reach
        return (depth, *(-(-r // s) for r, s in zip(plane, self.stride[1:], strict=True)))

    @property
    def elements(self) -> int:
        """The number of elements in the copy of a channel."""
        return math.prod(self.cells) * self.stride[1] * self.stride[2]

    def turns(self, count: int) -> bool:
        """Whether vectors are to run along the samples of a batch, because images are too small."""
        planes = self.sizes[0] == self.out[0] == self.kernel[0] == 1 and self.low[0] == 0
        return planes and count >= _BATCH and self.out[1] * self.out[2] <= _SMALL

    def turned(self, count: int) -> Correlation:
        """The same for images with adjacent samples: (1, C, height, width, N)."""
        return Correlation(
            (*self.sizes[1:], count),
            (*self.out[1:], count),
            (*self.kernel[1:], 1),
            (*self.stride[1:], 1),
            (*self.low[1:], 0),
            (*self.dilation[1:], 1),
        )

    def fits(self, count: int, least: int) -> bool:
        """Whether vectors are filled, with at least this number of positions in a plane."""
        positions = self.out[1] * self.out[2]
        return count * positions >= _POSITIONS and (positions >= least or self.turns(count))

    def rows(self, channels: int) -> Array:
        """Where the copy has what each channel and tap reads for the first position."""
        _, down, right = self.stride
        _, height, width = self.cells
        z, y, x = np.ix_(
            *(np.arange(k) * d for k, d in zip(self.kernel, self.dilation, strict=True))
        )
        phase = (z * down + y % down) * right + x % right
        places = (phase * height + y // down) * width + x // right
        starts = np.arange(channels)[:, None] * self.elements
        return (starts + places.reshape(-1)).reshape(-1).astype(np.intp)

    def pieces(self, lanes: int, read: int, straight: bool) -> tuple[Array, Array, int]:
        """Slots, bands and the positions that a scratch has, or 0 (see `correlate`)."""
        depth, height, width = self.out
        pitch = self.cells[2]
        area = self.stride[1] * self.stride[2] * self.cells[1] * pitch
        in_rows = straight and width >= lanes and -(-width // lanes) * lanes <= 1.03 * pitch
        if in_rows:
            columns = [*range(0, width - lanes, lanes), width - lanes]
            z, y, x = np.ix_(range(depth), range(height), columns)
            pairs = (z * self.stride[0] * area + y * pitch + x, (z * height + y) * width + x)
            slots = np.stack([p.reshape(-1) for p in pairs], 1)
            bands = np.array([[0, 0, height, len(slots)]])
            return _filled_up(slots, read), bands, 0
        count = -(-height // max(1, _BAND // pitch))
        most = -(-height // count)
        bands = np.array(
            [
                [z, top, rows, -(-((rows - 1) * pitch + width) // lanes)]
                for z in range(depth)
                for top in range(0, height, most)
                for rows in [min(most, height - top)]
            ]
        )
        steps = -(-most * pitch // (lanes * read)) * read
        slots = np.repeat(np.arange(steps) * lanes, 2).reshape(-1, 2)
        return slots, bands, steps * lanes


def _filled_up(slots: Array, read: int) -> Array:
    """Computes the last ones again, that there be a multiple."""
    return np.concatenate([slots, np.repeat(slots[-1:], -len(slots) % read, 0)])


@lru_cache(maxsize=64)
def _tables(
    plan: Correlation, channels: int, lanes: int, read: int, straight: bool
) -> tuple[Any, ...]:
    slots, bands, scratch = plan.pieces(lanes, read, straight)
    return plan.rows(channels), slots.astype(np.intp), bands.astype(np.intp), scratch


def _blocks(weight: Array, groups: int, made: int) -> Array:
    """Filters (O, C / groups, *kernel) as (groups, blocks, C / groups * taps, made).

    The last block has as many filters as the others; some of them are in the previous block, too.
    """
    filters = weight.shape[0] // groups
    matrix = weight.reshape(groups, filters, -1)
    if filters < made:
        blocks = np.zeros((groups, 1, matrix.shape[2], made), weight.dtype)
        blocks[:, 0, :, :filters] = matrix.swapaxes(1, 2)
        return blocks
    starts = [*range(0, filters - made, made), filters - made]
    which = np.array(starts)[:, None] + np.arange(made)
    return np.ascontiguousarray(matrix[:, which].swapaxes(2, 3))


def correlate(
    loops: Any, x: Array, weight: Array, bias: Array | None, plan: Correlation, groups: int
) -> Array:
    """(N, C, *sizes) and filters (O, C / groups, *kernel): (N, O, *out)."""
    count, filters = x.shape[0], weight.shape[0]
    out = np.empty((count, filters, *plan.out), x.dtype)
    x = np.ascontiguousarray(x).reshape(count, -1, *plan.sizes)
    blocks = _blocks(weight, groups, loops.MADE)
    shift = np.zeros(filters + loops.MADE, x.dtype)
    if bias is not None:
        shift[:filters] = bias
    lanes = loops.VECTOR // x.itemsize
    straight = filters // groups >= loops.MADE

    def write(
        plan: Correlation, x: Array, out: Array, samples: tuple[int, int], share: tuple[int, int]
    ) -> None:
        rows, slots, bands, positions = _tables(plan, weight.shape[1], lanes, loops.READ, straight)
        slots, bands = _shared(slots, bands, 0 if positions else loops.READ, *share)
        packed = np.zeros(x.shape[1] * plan.elements + (loops.READ + 1) * lanes, x.dtype)
        scratch = np.empty((filters + loops.MADE if positions else 0, positions), x.dtype)
        loops.correlate(
            *(x, blocks, shift, out, *samples, rows, slots, bands, packed, scratch, groups),
            *(plan.low, plan.stride, plan.cells),
        )

    def part(first: int, last: int) -> None:
        write(plan, x, out, (first, last), (0, 1))

    def turned_part(first: int, last: int) -> None:
        turned = plan.turned(last - first)
        found = np.empty((1, filters, *turned.out), x.dtype)
        write(turned, _turned(x[first:last]), found, (0, 1), (0, 1))
        out[first:last] = found.reshape(-1, last - first).T.reshape(-1, *out.shape[1:])

    threads = _threads(out.size * math.prod(weight.shape[1:]))
    if plan.turns(count):
        in_parts(turned_part, count, threads, min(threads, count // _BATCH))
    elif count >= threads:
        # Each part makes a padded copy of its own.
        each = max(1, min(_PARTS, _COPIES // (x.shape[1] * plan.elements)))
        in_parts(part, count, threads, min(count, each * threads))
    else:
        # Each thread packs all samples, which is little beside the products with all filters.
        in_parts(
            lambda i, _: write(plan, x, out, (0, count), (i, threads)), threads, threads, threads
        )
    return out


def _shared(slots: Array, bands: Array, step: int, part: int, parts: int) -> tuple[Array, Array]:
    """One of some parts of all positions: of the bands or, with a step, of the slots."""
    if parts == 1:
        return slots, bands
    if not step:
        return slots, bands[len(bands) * part // parts : len(bands) * (part + 1) // parts]
    steps = len(slots) // step
    begin, end = (steps * i // parts * step for i in (part, part + 1))
    return slots[begin:end], np.array([[*bands[0, :3], end - begin]], np.intp)


def _turned(x: Array) -> Array:
    """A batch (N, C, *sizes) as one sample (1, C, *sizes, N), without the first of the sizes."""
    count, channels = x.shape[:2]
    turned = np.ascontiguousarray(x.reshape(count, -1).T)
    return turned.reshape(1, channels, *x.shape[3:], count)


def _threads(products: int) -> int:
    return max(1, min(thread_count(), products // _PART))


def _by_residue(plan: Correlation, axis: int) -> Iterator[tuple[slice, slice, Ints]]:
    """How the gradient of the input is made along a dimension, by the place in the stride.

    Yields which elements of the input, which taps read them, in reverse, and how many elements
    there are, the padding and the dilation of the correlation of the gradient with these taps.
    """
    size, kernel, stride, low, dilation = [
        numbers[axis] for numbers in (plan.sizes, plan.kernel, plan.stride, plan.low, plan.dilation)
    ]
    step = stride // math.gcd(stride, dilation)
    for begin in range(min(stride, size)):
        taps = [tap for tap in range(kernel) if (begin + low - tap * dilation) % stride == 0]
        if taps:
            first = (begin + low - taps[-1] * dilation) // stride
            count = len(range(begin, size, stride))
            reverse = slice(taps[-1], taps[0] - 1 if taps[0] else None, -step)
            yield slice(begin, None, stride), reverse, (count, -first, step * dilation // stride)


def input_gradient(loops: Any, grad: Array, weight: Array, plan: Correlation, groups: int) -> Array:
    """Gradient (N, O, *out) and filters (O, C / groups, *kernel): (N, C, *sizes)."""
    count, (filters, channels) = grad.shape[0], weight.shape[:2]
    by_group = weight.reshape(groups, filters // groups, channels, *plan.kernel)
    turned = by_group.swapaxes(1, 2).reshape(groups * channels, -1, *plan.kernel)
    out = None
    for ways in itertools.product(*(_by_residue(plan, axis) for axis in range(3))):
        places, taps, numbers = zip(*ways, strict=True)
        sizes, low, dilation = zip(*numbers, strict=True)
        chosen = turned[:, :, *taps]
        step = Correlation(plan.out, sizes, chosen.shape[2:], (1, 1, 1), low, dilation)
        found = correlate(loops, grad, chosen, None, step, groups)
        if sizes == plan.sizes:
            return found
        if out is None:
            # Where no tap reads, the gradient is zero.
            out = np.zeros((count, groups * channels, *plan.sizes), grad.dtype)
        out[:, :, *places] = found
    return np.zeros((count, groups * channels, *plan.sizes), grad.dtype) if out is None else out


def weight_gradient(
    loops: Any, grad: Array, x: Array, shape: Ints, plan: Correlation, groups: int
) -> Array:
    """From gradient (N, O, *out) and input (N, C, *sizes), the gradient of filters (O, C / groups,
    *kernel)."""
    count = x.shape[0]
    grad = np.ascontiguousarray(grad).reshape(count, -1, *plan.out)
    x = np.ascontiguousarray(x).reshape(count, -1, *plan.sizes)

    def part(first: int, last: int) -> Array:
        return _filter_sums(loops, grad[first:last], x[first:last], shape, plan, groups)

    def turned_part(first: int, last: int) -> Array:
        turned = _turned(grad[first:last]), _turned(x[first:last])
        return _filter_sums(loops, *turned, shape, plan.turned(last - first), groups)

    threads = _threads(grad.size * math.prod(shape[1:]))
    if plan.turns(count):
        found = in_parts(turned_part, count, threads, min(threads, count // _BATCH))
    else:
        found = in_parts(part, count, threads, min(count, _PARTS * threads))
    return sum(found[1:], found[0]).reshape(shape)


def _filter_sums(
    loops: Any, grad: Array, x: Array, shape: Ints, plan: Correlation, groups: int
) -> Array:
    """The gradient (O, C / groups * taps) of filters of a shape, from some of the samples."""
    lanes = loops.VECTOR // x.itemsize
    taps = plan.rows(shape[1])
    rows = np.concatenate([taps, np.repeat(taps[-1:], -len(taps) % loops.READ)])
    made = shape[0] // groups
    padded = -(-made // loops.MADE) * loops.MADE
    pitch = plan.cells[2]
    cells = (plan.out[0], plan.out[1] + -(-lanes // pitch), pitch)
    # Sums over vectors are added up once for so many samples as stay in the cache.
    copy = x.shape[1] * plan.elements + (loops.READ + 1) * lanes
    line = math.prod(cells)
    room = _SAMPLES // ((copy + groups * padded * line) * x.itemsize)
    copies = max(1, min(len(x), room, loops.PIECE // math.prod(cells[1:])))
    packed = np.zeros((copies, copy), x.dtype)
    lines = np.zeros((copies, groups * padded, line), x.dtype)
    total = np.zeros((groups * padded, len(rows)), x.dtype)
    loops.weight_gradient(
        *(grad, x, 0, len(x), rows, packed, lines, total, groups),
        *(plan.low, plan.stride, plan.cells, cells),
    )
    return total.reshape(groups, padded, -1)[:, :made, : len(taps)].reshape(shape[0], -1)
