"""Numerical routines against PyTorch's: matrices, spectra, layers, random numbers, sorting.

Forward only, nothing recorded. It measures the kernels: sizes are large enough to make the overhead
of a call negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks.libraries import libraries
from benchmarks.measure import Effort, Row, interleave

# Called with the library's module and its tensors.
Operation = Callable[..., object]
Arrays = tuple[Any, ...]

SIDE: Final = 512
COUNT: Final = 10**6
# A power of two next to it, and a length with small factors only.
LENGTHS: Final = (1 << 20, COUNT)
REALS: Final = ("float32", "float64")


@dataclass(frozen=True)
class Case:
    """One operation and its arguments, which are made just before the measurement."""

    name: str
    operation: Operation
    arrays: Callable[[], Arrays] = tuple


def _generator() -> np.random.Generator:
    return np.random.default_rng(0)


def _normal(*shape: int, dtype: str = "float32") -> Callable[[], Arrays]:
    return lambda: (_generator().standard_normal(shape).astype(dtype),)


def _matrix(side: int, dtype: str) -> Callable[[], Arrays]:
    return _normal(side, side, dtype=dtype)


def _definite(side: int, dtype: str) -> Callable[[], Arrays]:
    """A symmetric matrix with positive eigenvalues."""

    def make() -> Arrays:
        factor = _generator().standard_normal((side, side))
        return ((factor @ factor.T / side + np.eye(side)).astype(dtype),)

    return make


def _with_right_side(make: Callable[[], Arrays], columns: int) -> Callable[[], Arrays]:
    def both() -> Arrays:
        (matrix,) = make()
        shape = (len(matrix), columns)
        return matrix, _generator().standard_normal(shape).astype(matrix.dtype)

    return both


MATRICES: Final[dict[str, Operation]] = {
    "svd": lambda module, a: module.linalg.svd(a),
    "qr": lambda module, a: module.linalg.qr(a),
    "inv": lambda module, a: module.linalg.inv(a),
    "det": lambda module, a: module.linalg.det(a),
    "slogdet": lambda module, a: module.linalg.slogdet(a),
    "lu_factor": lambda module, a: module.linalg.lu_factor(a),
}
DEFINITE: Final[dict[str, Operation]] = {
    "eigh": lambda module, a: module.linalg.eigh(a),
    "cholesky": lambda module, a: module.linalg.cholesky(a),
}
SYSTEMS: Final[dict[str, Operation]] = {
    "solve": lambda module, a, b: module.linalg.solve(a, b),
    "lstsq": lambda module, a, b: module.linalg.lstsq(a, b),
}


def linear_algebra(smoke: bool) -> Iterator[Case]:
    side = 16 if smoke else SIDE
    for dtype in REALS:
        square = _matrix(side, dtype)
        kinds = [(MATRICES, square), (DEFINITE, _definite(side, dtype))]
        kinds.append((SYSTEMS, _with_right_side(square, 16)))
        for operations, arrays in kinds:
            for name, operation in operations.items():
                yield Case(f"{name}, {side}x{side} {dtype}", operation, arrays)


SPECTRA: Final[dict[str, tuple[str, Operation]]] = {
    "fft": ("complex64", lambda module, a: module.fft.fft(a)),
    "ifft": ("complex64", lambda module, a: module.fft.ifft(a)),
    "rfft": ("float32", lambda module, a: module.fft.rfft(a)),
    "irfft": ("complex64", lambda module, a: module.fft.irfft(a)),
}


def spectra(smoke: bool) -> Iterator[Case]:
    for length in (64,) if smoke else LENGTHS:
        for name, (dtype, operation) in SPECTRA.items():
            yield Case(f"{name}, {length} {dtype}", operation, _normal(length, dtype=dtype))
    double = 64 if smoke else LENGTHS[0]
    fft, rfft = SPECTRA["fft"][1], SPECTRA["rfft"][1]
    yield Case(f"fft, {double} complex128", fft, _normal(double, dtype="complex128"))
    yield Case(f"rfft, {double} float64", rfft, _normal(double, dtype="float64"))
    for rows, length in ((8, 8),) if smoke else ((16384, 64), (1024, 1024)):
        for name, (dtype, operation) in SPECTRA.items():
            arrays = _normal(rows, length, dtype=dtype)
            yield Case(f"{name}, {rows} rows of {length} {dtype}", operation, arrays)
    side = 8 if smoke else 1024
    plane = _normal(side, side, dtype="complex64")
    yield Case(f"fft2, {side}x{side} complex64", lambda module, a: module.fft.fft2(a), plane)
    plane = _normal(side, side)
    yield Case(f"rfft2, {side}x{side} float32", lambda module, a: module.fft.rfft2(a), plane)


def _interpolate(mode: str, size: tuple[int, int]) -> Operation:
    return lambda module, x: module.nn.functional.interpolate(x, size=size, mode=mode)


def _attention(**options: bool) -> Operation:
    return lambda module, q, k, v: module.nn.functional.scaled_dot_product_attention(
        q, k, v, **options
    )


def _three(*shape: int) -> Callable[[], Arrays]:
    return lambda: tuple(_generator().standard_normal((3, *shape)).astype("float32"))


def _filters(shape: tuple[int, ...], *filters: int) -> Callable[[], Arrays]:
    def make() -> Arrays:
        generator = _generator()
        sizes = (shape, filters, filters[:1])
        return tuple([generator.standard_normal(size).astype("float32") for size in sizes])

    return make


def layers(smoke: bool) -> Iterator[Case]:
    batch, side = (1, 8) if smoke else (8, 64)
    images = _normal(batch, 16, side, side)
    for mode in ("nearest", "bilinear", "bicubic"):
        for size in (2 * side, side // 2, side * 3 // 4):
            name = f"interpolate {mode}, {batch}x16x{side}x{side} to {size}x{size}"
            yield Case(name, _interpolate(mode, (size, size)), images)
    shape = (2, 4, 32) if smoke else (8, 32, 4096)
    yield Case(
        f"conv1d, {'x'.join(map(str, shape))}, 32 filters of 3",
        lambda module, x, w, b: module.nn.functional.conv1d(x, w, b, padding=1),
        _filters(shape, 32, shape[1], 3),
    )
    for planes in [(1, 2, 8, 8, 4)] if smoke else [(32, 16, 32, 32, 32), (32, 64, 16, 16, 64)]:
        *shape2, filters = planes
        yield Case(
            f"conv2d, {'x'.join(map(str, shape2))}, {filters} filters of 3x3",
            lambda module, x, w, b: module.nn.functional.conv2d(x, w, b, padding=1),
            _filters(tuple(shape2), filters, shape2[1], 3, 3),
        )
    shape3 = (1, 2, 4, 4, 4) if smoke else (2, 16, 16, 32, 32)
    yield Case(
        f"conv3d, {'x'.join(map(str, shape3))}, 16 filters of 3x3x3",
        lambda module, x, w, b: module.nn.functional.conv3d(x, w, b, padding=1),
        _filters(shape3, 16, shape3[1], 3, 3, 3),
    )
    yield Case(
        f"conv3d, {'x'.join(map(str, shape3))}, 16 filters of 3x3x3, stride 2",
        lambda module, x, w, b: module.nn.functional.conv3d(x, w, b, padding=1, stride=2),
        _filters(shape3, 16, shape3[1], 3, 3, 3),
    )
    yield Case(
        f"max_pool1d of 2, {'x'.join(map(str, shape))}",
        lambda module, x: module.nn.functional.max_pool1d(x, 2),
        _normal(*shape),
    )
    yield Case(
        f"max_pool1d of 3, stride 2, {'x'.join(map(str, shape))}",
        lambda module, x: module.nn.functional.max_pool1d(x, 3, 2, 1),
        _normal(*shape),
    )
    yield Case(
        f"max_pool2d of 2, {batch}x16x{side}x{side}",
        lambda module, x: module.nn.functional.max_pool2d(x, 2),
        images,
    )
    yield Case(
        f"max_pool3d of 2, {'x'.join(map(str, shape3))}",
        lambda module, x: module.nn.functional.max_pool3d(x, 2),
        _normal(*shape3),
    )
    for size in (1, 7):
        yield Case(
            f"adaptive_avg_pool2d, {batch}x16x{side}x{side} to {size}x{size}",
            lambda module, x, size=size: module.nn.functional.adaptive_avg_pool2d(x, size),
            images,
        )
    heads = (1, 2, 16, 8) if smoke else (4, 8, 256, 64)
    name = "x".join(map(str, heads))
    yield Case(f"attention, {name}", _attention(), _three(*heads))
    yield Case(f"attention, {name}, causal", _attention(is_causal=True), _three(*heads))
    heads = (1, 2, 16, 8) if smoke else (1, 8, 1024, 64)
    yield Case(f"attention, {'x'.join(map(str, heads))}", _attention(), _three(*heads))


def random_numbers(smoke: bool) -> Iterator[Case]:
    count = 100 if smoke else COUNT
    for dtype in REALS:
        for name in ("rand", "randn"):
            yield Case(
                f"{name}, {count} {dtype}",
                lambda module, name=name, dtype=dtype: getattr(module, name)(
                    count, dtype=getattr(module, dtype)
                ),
            )
        yield Case(
            f"bernoulli, {count} {dtype}",
            lambda module, p: module.bernoulli(p),
            lambda dtype=dtype: (_generator().random(count).astype(dtype),),
        )
        yield Case(
            f"exponential_, {count} {dtype}",
            lambda module, dtype=dtype: module.empty(
                count, dtype=getattr(module, dtype)
            ).exponential_(),
        )
        yield Case(
            f"multinomial, {count // 100} of {count} {dtype}",
            lambda module, weights: module.multinomial(weights, count // 100),
            lambda dtype=dtype: (_generator().random(count).astype(dtype),),
        )
    yield Case(f"randperm, {count}", lambda module: module.randperm(count))
    yield Case(f"randint, {count}", lambda module: module.randint(0, 1000, (count,)))


SEQUENCES: Final[dict[str, Operation]] = {
    "cumsum": lambda module, x: module.cumsum(x, 0),
    "sort": lambda module, x: module.sort(x),
    "topk of 100": lambda module, x: module.topk(x, 100),
    "quantile": lambda module, x: module.quantile(x, 0.3),
    "histc": lambda module, x: module.histc(x, 100),
    "unique": lambda module, x: module.unique(x),
}


def sequences(smoke: bool) -> Iterator[Case]:
    count = 100 if smoke else COUNT
    for dtype in REALS:
        for name, operation in SEQUENCES.items():
            yield Case(f"{name}, {count} {dtype}", operation, _normal(count, dtype=dtype))
    integers: Callable[[], Arrays] = lambda: (_generator().integers(0, 1000, count),)  # noqa: E731  # one of several makers
    yield Case(f"unique, {count} int64 below 1000", SEQUENCES["unique"], integers)
    yield Case(f"sort, {count} int64 below 1000", SEQUENCES["sort"], integers)
    yield Case(
        f"bincount, {count} int64 below 1000", lambda module, x: module.bincount(x), integers
    )


SUBJECTS: Final = (linear_algebra, spectra, layers, random_numbers, sequences)


def cases(smoke: bool) -> Iterator[Case]:
    for subject in SUBJECTS:
        yield from subject(smoke)


def _call(operation: Operation, module: Any, arguments: Arrays) -> Callable[[], object]:
    return lambda: operation(module, *arguments)


def run(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    for case in cases(effort.smoke):
        contestants: dict[str, Callable[[], object]] = {}
        for library in libraries():
            arguments = tuple(library.constant(array) for array in case.arrays())
            contestants[library.name] = _call(case.operation, library.module, arguments)
        rows.append(Row("numerics", case.name, "us per call", interleave(contestants, effort)))
    return rows
