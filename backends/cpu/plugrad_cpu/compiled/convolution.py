"""Loops of convolution over a padded copy of a sample that stays in the cache.

There is no matrix of columns: a row of that matrix would be a run of the copy, which a tile reads
in place. A tile holds its sums in registers, MADE filters times READ vectors of neighbouring
positions (or of rows, for the gradient of the filters), and adds one product to each per step.
numba has no vectors, and LLVM makes none of such loops by itself: the tiles are written in LLVM's
language. They are in this module because numba looks for changes of the module only before it takes
code from its disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

Array = Any
Ints = tuple[int, ...]

# Makes a function of numba's of one that writes LLVM's instructions.
_in_llvm: Any = intrinsic

_FEATURES: Final = llvmlite.binding.get_host_cpu_features()
# Bytes of a vector, and the shape of a tile: its sums should fit into the registers: 16 with AVX2,
# 32 with other instructions.
_WIDE: Final = bool(_FEATURES.get("avx512f"))
_NARROW: Final = bool(_FEATURES.get("avx2")) and not _WIDE
VECTOR: Final = 64 if _WIDE else 32 if _NARROW else 16
MADE: Final = 4
READ: Final = 3 if _NARROW else 4

# The number of positions for which the gradient of MADE filters stays in the first-level cache
# while it is multiplied with all rows.
PIECE: Final = 1024

# A product may go into its sum unrounded; lanes of a sum may be added in any order.
_FUSED: Final = ("contract",)
_ANY_ORDER: Final = ("reassoc",)


class _Vectors:
    """Vectors of the elements of an array, in a function that is being built."""

    def __init__(self, context: Any, builder: Any, array: Any) -> None:
        self.builder = builder
        self.element = context.get_value_type(array.dtype)
        self.size = context.get_abi_sizeof(self.element)
        self.lanes = VECTOR // self.size
        self.type = ir.VectorType(self.element, self.lanes)
        self.zeros = ir.Constant(self.type, [self.element(0.0)] * self.lanes)

    def _place(self, pointer: Any) -> Any:
        return self.builder.bitcast(pointer, self.type.as_pointer())

    def load(self, pointer: Any) -> Any:
        return self.builder.load(self._place(pointer), align=self.size)

    def store(self, value: Any, pointer: Any) -> None:
        self.builder.store(value, self._place(pointer), align=self.size)

    def filled(self, number: Any) -> Any:
        index = ir.IntType(32)
        nothing = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(nothing, number, index(0))
        everywhere = ir.Constant(ir.VectorType(index, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, nothing, everywhere)

    def add_product(self, sums: Any, a: Any, b: Any) -> None:
        product = self.builder.fmul(a, b, flags=_FUSED)
        total = self.builder.fadd(self.builder.load(sums), product, flags=_FUSED)
        self.builder.store(total, sums)

    def total(self, value: Any) -> Any:
        name = f"llvm.vector.reduce.fadd.v{self.lanes}{self.element.intrinsic_name}"
        kind = ir.FunctionType(self.element, [self.element, self.type])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [self.element(0.0), value], fastmath=_ANY_ORDER)


def _data(context: Any, builder: Any, kind: Any, value: Any, start: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, value).data, [start])


def _tile_of_positions(read: int) -> Any:
    @_in_llvm
    def tile(  # type: ignore[no-untyped-def]  # numba reads the names of the arguments
        typing, x, at, rows, weight, weight_at, bias, bias_at, out, out_at, out_step, slots, slot
    ):
        """out[made, slot] = bias[made] + the sum over k of weight[k, made] * x[rows[k] + slot]."""
        place = types.intp
        signature = types.void(
            x, place, rows, weight, place, bias, place, out, place, place, slots, place
        )

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            (
                x_,
                at_,
                rows_,
                weight_,
                weight_at_,
                bias_,
                bias_at_,
                out_,
                out_at_,
                step,
                slots_,
                slot_,
            ) = values
            vectors = _Vectors(context, builder, x)
            number = context.get_value_type(place)
            seen = _data(context, builder, x, x_, at_)
            factors = _data(context, builder, weight, weight_, weight_at_)
            shifts = _data(context, builder, bias, bias_, bias_at_)
            made = _data(context, builder, out, out_, out_at_)
            offsets = _data(context, builder, rows, rows_, number(0))
            table = _data(context, builder, slots, slots_, builder.mul(slot_, number(2)))
            sources, targets = [
                [builder.load(builder.gep(table, [number(2 * i + j)])) for i in range(read)]
                for j in range(2)
            ]
            sources = [builder.gep(seen, [source]) for source in sources]
            sums = [
                [cgutils.alloca_once(builder, vectors.type) for _ in sources] for _ in range(MADE)
            ]
            for i, row in enumerate(sums):
                start = vectors.filled(builder.load(builder.gep(shifts, [number(i)])))
                for entry in row:
                    builder.store(start, entry)
            count = context.make_array(rows)(context, builder, rows_).nitems
            with cgutils.for_range(builder, count) as loop:
                offset = builder.load(builder.gep(offsets, [loop.index]))
                columns = [vectors.load(builder.gep(source, [offset])) for source in sources]
                factor = builder.gep(factors, [builder.mul(loop.index, number(MADE))])
                for i, row in enumerate(sums):
                    filled = vectors.filled(builder.load(builder.gep(factor, [number(i)])))
                    for entry, column in zip(row, columns, strict=True):
                        vectors.add_product(entry, filled, column)
            for i, row in enumerate(sums):
                line = builder.gep(made, [builder.mul(step, number(i))])
                for entry, target in zip(row, targets, strict=True):
                    vectors.store(builder.load(entry), builder.gep(line, [target]))
            return context.get_dummy_value()

        return signature, build

    return tile


_TILE: Final = _tile_of_positions(READ)
# For what is left over, which is much where images are small.
_HALF: Final = _tile_of_positions(READ // 2)


@_in_llvm
def _tile_of_rows(  # type: ignore[no-untyped-def]  # numba reads the names of the arguments
    typing,
    grad,
    grad_at,
    line,
    grad_copy,
    x,
    x_at,
    x_copy,
    rows,
    row,
    copies,
    length,
    out,
    out_at,
    out_step,
):
    """out[made, row] += the sums over i below length of grad[made, i] * x[rows[row] + i], in copies
    that are grad_copy and x_copy apart."""
    place = types.intp
    signature = types.void(
        *(grad, place, place, place, x, place, place, rows, place, place, place),
        *(out, place, place),
    )

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        grad_, grad_at_, line_, grad_copy_, x_, x_at_, x_copy_, rows_, row_, *rest = values
        copies_, length_, out_, out_at_, step = rest
        vectors = _Vectors(context, builder, x)
        number = context.get_value_type(place)
        offsets = _data(context, builder, rows, rows_, row_)
        read = _data(context, builder, x, x_, x_at_)
        factors = _data(context, builder, grad, grad_, grad_at_)
        made = _data(context, builder, out, out_, out_at_)
        sources = [
            builder.gep(read, [builder.load(builder.gep(offsets, [number(i)]))])
            for i in range(READ)
        ]
        lines = [builder.gep(factors, [builder.mul(line_, number(i))]) for i in range(MADE)]
        sums = [[cgutils.alloca_once(builder, vectors.type) for _ in sources] for _ in lines]
        for line_sums in sums:
            for entry in line_sums:
                builder.store(vectors.zeros, entry)
        with cgutils.for_range(builder, copies_) as copy:
            behind = builder.mul(copy.index, x_copy_), builder.mul(copy.index, grad_copy_)
            here = [builder.gep(source, [behind[0]]) for source in sources]
            there = [builder.gep(line, [behind[1]]) for line in lines]
            step_of_lanes = number(vectors.lanes)
            with cgutils.for_range_slice(builder, number(0), length_, step_of_lanes) as (i, _):
                columns = [vectors.load(builder.gep(source, [i])) for source in here]
                for line, line_sums in zip(there, sums, strict=True):
                    factor = vectors.load(builder.gep(line, [i]))
                    for entry, column in zip(line_sums, columns, strict=True):
                        vectors.add_product(entry, factor, column)
        for i, line_sums in enumerate(sums):
            line = builder.gep(made, [builder.mul(step, number(i))])
            for j, entry in enumerate(line_sums):
                pointer = builder.gep(line, [number(j)])
                total = builder.fadd(builder.load(pointer), vectors.total(builder.load(entry)))
                builder.store(total, pointer)
        return context.get_dummy_value()

    return signature, build


# Not `jit.compiled`, which refuses a library of logarithms: there are none here.
def _compiled(function: Callable[..., Any]) -> Any:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        # No folder can be written to: each process compiles for itself.
        return njit(**options)(function)


@_in_llvm
def _copy(  # type: ignore[no-untyped-def]  # numba reads the names of the arguments
    typing, source, source_at, target, target_at, count
):
    """Copies neighbouring elements of a flat array."""
    signature = types.void(source, types.intp, target, types.intp, types.intp)

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source_, source_at_, target_, target_at_, count_ = values
        read = _data(context, builder, source, source_, source_at_)
        made = _data(context, builder, target, target_, target_at_)
        size = context.get_abi_sizeof(context.get_value_type(source.dtype))
        cgutils.raw_memcpy(builder, made, read, count_, size)
        return context.get_dummy_value()

    return signature, build


@_in_llvm
def _copy_halved(  # type: ignore[no-untyped-def]  # numba reads the names of the arguments
    typing, source, source_at, target, target_at
):
    """Copies every second element of a flat array, as many as there are in a vector."""
    signature = types.void(source, types.intp, target, types.intp)

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source_, source_at_, target_, target_at_ = values
        vectors = _Vectors(context, builder, source)
        read = _data(context, builder, source, source_, source_at_)
        lanes, index = vectors.lanes, ir.IntType(32)
        # The second vector ends with the last element that is needed: none is read behind it.
        first = vectors.load(read)
        second = vectors.load(builder.gep(read, [ir.Constant(source_at_.type, lanes - 1)]))
        wanted = [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]
        order = ir.Constant(ir.VectorType(index, lanes), wanted)
        made = _data(context, builder, target, target_, target_at_)
        vectors.store(builder.shuffle_vector(first, second, order), made)
        return context.get_dummy_value()

    return signature, build


@_compiled
def _pack(
    x: Array, at: int, sizes: Ints, packed: Array, low: Ints, stride: Ints, cells: Ints
) -> None:
    """Copies a sample (C, *sizes) to its place among the zeros of its padded copy.

    The copy is (C, depth, stride of rows, stride of columns, rows, columns): elements that windows
    read with a stride are neighbours in it.
    """
    channels, depth, height, width = sizes
    _, down, right = stride
    lanes = VECTOR // x.itemsize
    for phase in range(right):
        # What is in front of the input, or beyond what windows reach, is not copied.
        skipped = max(0, (low[2] - phase + right - 1) // right)
        begin = phase - low[2] + skipped * right
        count = min(cells[2] - skipped, (width - begin + right - 1) // right)
        if count <= 0:
            continue
        for plane in range(channels * cells[0]):
            z = plane % cells[0] - low[0]
            if z < 0 or z >= depth:
                continue
            source = at + (plane // cells[0] * depth + z) * height * width + begin
            for turn in range(down):
                line = ((plane * down + turn) * right + phase) * cells[1]
                for y in range(cells[1]):
                    row = y * down + turn - low[1]
                    if row < 0 or row >= height:
                        continue
                    read, made = source + row * width, (line + y) * cells[2] + skipped
                    if right == 1:
                        _copy(x, read, packed, made, count)
                    elif right == 2 and count >= lanes:
                        for i in range(0, count - lanes, lanes):
                            _copy_halved(x, read + 2 * i, packed, made + i)
                        i = count - lanes
                        _copy_halved(x, read + 2 * i, packed, made + i)
                    else:
                        for i in range(count):
                            packed[np.uintp(made + i)] = x[np.uintp(read + right * i)]


@_compiled
def correlate(
    x: Array,
    weight: Array,
    bias: Array,
    out: Array,
    first: int,
    last: int,
    rows: Array,
    slots: Array,
    bands: Array,
    packed: Array,
    scratch: Array,
    groups: int,
    low: Ints,
    stride: Ints,
    cells: Ints,
) -> None:
    """The samples from `first` to `last` of out (N, O, *out), correlated with filters.

    Args:
        x: (N, C, *sizes). Shapes have three spatial dimensions.
        weight: (groups, blocks of filters, C / groups * taps, MADE).
        bias: (O + MADE,).
        rows: where the copy of a channel has what a tap reads for the first position.
        slots: pairs, how far vectors are behind that in the copy and in the result.
        bands: the depth, the row and the rows of positions that a scratch takes, with the number
            of its slots. Without scratch there is one, which is all.
        packed: zeros, for the copy of a sample and what vectors read behind it.
        scratch: (O + MADE, positions of a band) where vectors reach over the ends of rows, else
            without elements.
        low: padding in front.
        cells: see `_pack`.
    """
    filters, plane = out.shape[1], out.shape[2] * out.shape[3] * out.shape[4]
    made = filters // groups
    blocks, terms = weight.shape[1], weight.shape[2]
    area = stride[1] * stride[2] * cells[1] * cells[2]
    channels = x.shape[1] // groups * cells[0] * area
    through = scratch.size > 0
    flat, factors = out.reshape(-1), weight.reshape(-1)
    target = scratch.reshape(-1) if through else flat
    step = scratch.shape[1] if through else plane
    sizes = x.shape[1:]
    source = x.reshape(-1)
    for sample in range(first, last):
        _pack(source, sample * x[0].size, sizes, packed, low, stride, cells)
        base = 0 if through else sample * filters * plane
        for band in range(bands.shape[0]):
            depth, top, height, count = bands[band]
            start = depth * stride[0] * area + top * cells[2]
            slot = 0
            while slot < count:
                halved = count - slot <= READ // 2
                for group in range(groups):
                    for block in range(blocks):
                        made_at = group * made + min(block * MADE, max(made - MADE, 0))
                        weight_at = (group * blocks + block) * terms * MADE
                        from_, to = start + group * channels, base + made_at * step
                        if halved:
                            _HALF(
                                packed,
                                from_,
                                rows,
                                factors,
                                weight_at,
                                bias,
                                made_at,
                                target,
                                to,
                                step,
                                slots,
                                slot,
                            )
                        else:
                            _TILE(
                                packed,
                                from_,
                                rows,
                                factors,
                                weight_at,
                                bias,
                                made_at,
                                target,
                                to,
                                step,
                                slots,
                                slot,
                            )
                slot += READ // 2 if halved else READ
            if through:
                for i in range(filters):
                    row = ((sample * filters + i) * out.shape[2] + depth) * out.shape[3] + top
                    for y in range(height):
                        read = i * step + y * cells[2]
                        _copy(target, read, flat, (row + y) * out.shape[4], out.shape[4])


@_compiled
def weight_gradient(
    grad: Array,
    x: Array,
    first: int,
    last: int,
    rows: Array,
    packed: Array,
    lines: Array,
    total: Array,
    groups: int,
    low: Ints,
    stride: Ints,
    cells: Ints,
    line_cells: Ints,
) -> None:
    """Adds the contributions of the samples from `first` to `last` to the gradient of filters.

    Args:
        grad: (N, O, *out); x: (N, C, *sizes).
        rows, low, stride, cells: see `correlate`; the rows are a multiple of READ.
        packed: zeros (copies, elements of a copy), for the copies of some samples.
        lines: zeros (copies, groups * blocks of MADE filters, elements of `line_cells`), for copies
            of the gradient with rows as long as in the copies of x.
        line_cells: depth, rows and columns of that copy; there are zeros behind the last row.
        total: (groups * blocks of MADE filters, rows).
    """
    made = grad.shape[1] // groups
    padded = lines.shape[1] // groups
    area = stride[1] * stride[2] * cells[1] * cells[2]
    channels = x.shape[1] // groups * cells[0] * area
    plane = line_cells[1] * line_cells[2]
    length = (grad.shape[3] - 1) * line_cells[2] + grad.shape[4]
    parts = max(1, length // PIECE)
    piece = (length // parts // VECTOR + 1) * VECTOR
    sizes, sizes_of_lines = x.shape[1:], (made, *grad.shape[2:])
    source, source_of_lines = x.reshape(-1), grad.reshape(-1)
    copies, factors, sums = packed.reshape(-1), lines.reshape(-1), total.reshape(-1)
    copy, line_copy = packed.shape[1], lines.shape[1] * lines.shape[2]
    step, row_count = lines.shape[2], total.shape[1]
    # What a tile adds up: some planes of a sample, or the only plane of some samples.
    deep, read_depth = grad.shape[2] > 1, stride[0] * area
    together = max(1, PIECE // length) if deep else 1
    line_step, read_step = (plane, read_depth) if deep else (line_copy, copy)
    for start in range(first, last, packed.shape[0]):
        samples = min(packed.shape[0], last - start)
        for i in range(samples):
            at = (start + i) * x[0].size
            _pack(source, at, sizes, copies[i * copy :], low, stride, cells)
            for group in range(groups):
                at = (start + i) * grad[0].size + group * made * grad[0, 0].size
                to = factors[i * line_copy + group * padded * step :]
                _pack(source_of_lines, at, sizes_of_lines, to, (0, 0, 0), (1, 1, 1), line_cells)
        for i in range(samples if deep else 1):
            for depth in range(0, grad.shape[2], together):
                many = min(together, grad.shape[2] - depth) if deep else samples
                for begin in range(0, length, piece):
                    count = min(piece, length - begin)
                    for group in range(groups):
                        read = i * copy + group * channels + depth * read_depth + begin
                        for line in range(group * padded, (group + 1) * padded, MADE):
                            line_at = i * line_copy + line * step + depth * plane + begin
                            for row in range(0, row_count, READ):
                                _tile_of_rows(
                                    *(factors, line_at, step, line_step, copies, read, read_step),
                                    *(rows, row, many, count),
                                    *(sums, line * row_count + row, row_count),
                                )
