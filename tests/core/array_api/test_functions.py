"""Functions of the standard that are not elementwise. Oracle: array-api-strict."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import plugrad
from plugrad import array_api as xp
from plugrad.autograd import gradcheck
from tests.core.array_api.against_strict import (
    COMPLEX,
    DTYPES,
    INTEGER,
    NUMERIC,
    REAL,
    UNSIGNED,
    compare,
    pairs,
)

ORDERED = ("bool", *INTEGER, *REAL)
FLOATING = REAL + COMPLEX

Call = Callable[..., Any]


def numbers(dtype: str, *shape: int) -> Any:
    """Small whole numbers, some of them equal, some zero; complex ones have imaginary parts."""
    values = np.arange(np.prod(shape)).reshape(shape) * 5 % 7
    if dtype in COMPLEX:
        return (values - 1j * (values % 3)).astype(dtype)
    return (values if dtype in UNSIGNED else values - 2).astype(dtype)


AXES: list[Any] = [None, 1, -1, (0, 2), ()]
# Name, dtypes, and a call on a namespace and an array of shape (2, 3, 2).
CUBES: list[tuple[str, tuple[str, ...], Call]] = [
    *((name, kinds, lambda lib, x, name=name, axis=axis, keep=keep: getattr(lib, name)(
        x, axis=axis, keepdims=keep
      ))
      for name, kinds in {
        "sum": NUMERIC, "prod": NUMERIC, "mean": FLOATING, "var": REAL, "std": REAL,
        "max": INTEGER + REAL, "min": INTEGER + REAL, "all": DTYPES, "any": DTYPES,
        "count_nonzero": DTYPES,
      }.items() for axis, keep in [*((axis, False) for axis in AXES), (None, True), (0, True)]),
    *((name, INTEGER + REAL, lambda lib, x, name=name, axis=axis, keep=keep: getattr(lib, name)(
        x, axis=axis, keepdims=keep
      ))
      for name in ("argmax", "argmin") for axis in (None, 0, -1) for keep in (False, True)),
    ("cumulative_sum", NUMERIC, lambda lib, x: lib.cumulative_sum(x, axis=1)),
    ("cumulative_sum", NUMERIC,
     lambda lib, x: lib.cumulative_sum(x, axis=-1, include_initial=True)),
    ("cumulative_prod", NUMERIC, lambda lib, x: lib.cumulative_prod(x, axis=0)),
    ("cumulative_prod", NUMERIC,
     lambda lib, x: lib.cumulative_prod(x, axis=0, include_initial=True)),
    ("diff", NUMERIC, lambda lib, x: lib.diff(x, axis=1, n=2)),
    ("diff", NUMERIC, lambda lib, x: lib.diff(x, prepend=x, append=x)),
    ("sort", INTEGER + REAL, lambda lib, x: lib.sort(x, axis=1, descending=True)),
    ("sort", INTEGER + REAL, lambda lib, x: lib.sort(x)),
    ("argsort", INTEGER + REAL, lambda lib, x: lib.argsort(x, axis=1, descending=True)),
    ("argsort", INTEGER + REAL, lambda lib, x: lib.argsort(x)),
    ("nonzero", DTYPES, lambda lib, x: lib.nonzero(x)),
    ("unique_all", ORDERED, lambda lib, x: lib.unique_all(x)),
    ("unique_counts", ORDERED, lambda lib, x: lib.unique_counts(x)),
    ("unique_inverse", ORDERED, lambda lib, x: lib.unique_inverse(x)),
    ("unique_values", INTEGER + REAL, lambda lib, x: lib.sort(lib.unique_values(x))),
    ("isin", INTEGER, lambda lib, x: lib.isin(x, x[0, :1, 1])),
    ("where", DTYPES, lambda lib, x: lib.where(x == x[0, 0, 0], x, x[0, 1, 1])),
    ("concat", DTYPES, lambda lib, x: lib.concat([x, x], axis=1)),
    ("concat", DTYPES, lambda lib, x: lib.concat([x, x], axis=None)),
    ("stack", DTYPES, lambda lib, x: lib.stack([x, x], axis=-1)),
    ("unstack", DTYPES, lambda lib, x: lib.unstack(x, axis=1)),
    ("flip", DTYPES, lambda lib, x: (lib.flip(x), lib.flip(x, axis=(0, -1)))),
    ("roll", DTYPES, lambda lib, x: (lib.roll(x, 2), lib.roll(x, (1, -1), axis=(0, 1)))),
    ("tile", DTYPES, lambda lib, x: lib.tile(x, (2, 1, 1, 2))),
    ("repeat", DTYPES, lambda lib, x: (lib.repeat(x, 2), lib.repeat(x, 2, axis=1))),
    ("repeat", DTYPES, lambda lib, x: lib.repeat(x, lib.asarray([1, 0, 2]), axis=1)),
    ("moveaxis", DTYPES, lambda lib, x: lib.moveaxis(x, (0, 1), (2, 0))),
    ("permute_dims", DTYPES, lambda lib, x: lib.permute_dims(x, (2, 0, 1))),
    ("matrix_transpose", DTYPES, lambda lib, x: (lib.matrix_transpose(x), x.mT)),
    ("expand_dims", DTYPES, lambda lib, x: lib.expand_dims(x, axis=-2)),
    ("squeeze", DTYPES, lambda lib, x: lib.squeeze(x[:1, :, :1], axis=(0, 2))),
    ("reshape", DTYPES, lambda lib, x: lib.reshape(x, (4, -1), copy=True)),
    ("take", DTYPES, lambda lib, x: lib.take(x, lib.asarray([2, 0, 0]), axis=1)),
    ("take_along_axis", DTYPES,
     lambda lib, x: lib.take_along_axis(x, lib.asarray([[[2], [0]], [[1], [1]]]), axis=1)),
    ("broadcast_to", DTYPES, lambda lib, x: lib.broadcast_to(x, (2, 2, 3, 2))),
    ("broadcast_arrays", DTYPES, lambda lib, x: lib.broadcast_arrays(x, x[0, :, :1])),
    ("meshgrid", NUMERIC, lambda lib, x: lib.meshgrid(x[0, 0, :], x[0, :, 0])),
    ("meshgrid", NUMERIC, lambda lib, x: lib.meshgrid(x[0, 0, :], x[0, :, 0], indexing="ij")),
    ("tril", DTYPES, lambda lib, x: lib.tril(x, k=-1)),
    ("triu", DTYPES, lambda lib, x: lib.triu(x, k=1)),
    ("matmul", NUMERIC, lambda lib, x: lib.matmul(x, lib.matrix_transpose(x))),
    ("tensordot", NUMERIC, lambda lib, x: lib.tensordot(x, x, axes=((0, 2), (0, 2)))),
    ("vecdot", NUMERIC, lambda lib, x: lib.vecdot(x, x[0, ...], axis=-2)),
    ("linalg.outer", NUMERIC, lambda lib, x: lib.linalg.outer(x[0, :, 0], x[0, 0, :])),
    ("linalg.cross", NUMERIC, lambda lib, x: lib.linalg.cross(x, x[:1, :, 1:], axis=-2)),
    ("linalg.diagonal", NUMERIC, lambda lib, x: lib.linalg.diagonal(x, offset=-1)),
    ("linalg.trace", NUMERIC, lambda lib, x: lib.linalg.trace(x, offset=1)),
    ("linalg.det", FLOATING, lambda lib, x: lib.linalg.det(x[:, :2, :])),
    ("linalg.inv", FLOATING, lambda lib, x: lib.linalg.inv(
        x[:, 1:, :] + lib.eye(2, dtype=x.dtype) * 9
    )),
    ("linalg.matrix_power", FLOATING, lambda lib, x: lib.linalg.matrix_power(x[:, :2, :], 3)),
    ("linalg.solve", FLOATING,
     lambda lib, x: (lib.linalg.solve(x[:, 1:, :] + lib.eye(2, dtype=x.dtype) * 9, x[0, 0, :]),
                     lib.linalg.solve(x[:, 1:, :] + lib.eye(2, dtype=x.dtype) * 9, x[0, 1:, :]))),
    *(("linalg.vector_norm", FLOATING, lambda lib, x, order=order, axis=axis: (
        lib.linalg.vector_norm(x, axis=axis, ord=order, keepdims=True)
      )) for order in (0, 1, 2, 3, float("inf"), -float("inf")) for axis in (None, 1)),
    *(("linalg.matrix_norm", FLOATING, lambda lib, x, order=order: (
        lib.linalg.matrix_norm(x, ord=order, keepdims=True)
      )) for order in ("fro", 1, -1, float("inf"), -float("inf"))),
    ("asarray", DTYPES, lambda lib, x: (lib.asarray(x), lib.asarray(x, copy=True))),
    ("zeros_like", DTYPES, lambda lib, x: (lib.zeros_like(x), lib.ones_like(x))),
    ("full_like", NUMERIC, lambda lib, x: lib.full_like(x, 3)),
    ("indexing", DTYPES, lambda lib, x: (x[..., None, 1:], x[1, ::2, :], x[x == x[0, 0, 0]])),
    ("indexing", DTYPES, lambda lib, x: x[lib.asarray([1, 0]), lib.asarray([2, 1]), 0]),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CUBES}))
def test_functions_of_an_array(name: str) -> None:
    for each, dtypes, call in CUBES:
        if each == name:
            for dtype in dtypes:
                compare(call, numbers(dtype, 2, 3, 2))


@pytest.mark.parametrize("name", ["sum", "where", "take", "tensordot"])
def test_functions_on_jax(name: str) -> None:
    pytest.importorskip("plugrad_jax")
    call = next(call for each, _, call in CUBES if each == name)
    compare(call, numbers("uint16", 2, 3, 2), device="jax")


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
def test_reductions_of_nothing(name: str) -> None:
    for axis in (None, 0, 1):
        compare(lambda lib, x, axis=axis: getattr(lib, name)(x, axis=axis), np.ones((0, 2)))


# Calls without an array.
MADE: list[tuple[Call, tuple[Any, ...], dict[str, Any]]] = [
    *((lambda lib: lib.arange, args, {}) for args in (
        (3,), (3.0,), (1, 8, 3), (1.0, 5.0, 0.5), (5, 0, -2), (0,), (-3,), (5, 1),
        (2**31, 2**31 + 2),
    )),
    *((lambda lib: lib.asarray, (value,), {}) for value in (
        1, 1.0, True, 1j, [1, 2], [[1.0], [2]], [True], [[1j, 2]], [], ((1, 2), (3, 4))
    )),
    *((lambda lib: lib.full, ((2, 1), value), {}) for value in (1, 1.5, True, 2j)),
    *((lambda lib: lib.eye, args, {"k": k}) for args in ((3,), (3, 2), (2, 4)) for k in (0, 1, -2)),
    *((lambda lib: lib.linspace, args, {"endpoint": end})
      for args in ((0, 3, 4), (1.5, -1.5, 5), (0, 1, 1), (0, 1, 0)) for end in (True, False)),
    (lambda lib: lib.zeros, (3,), {}), (lambda lib: lib.ones, ((2, 0),), {}),
    (lambda lib: lib.broadcast_shapes, ((2, 1), (3,), ()), {}),
    (lambda lib: lib.meshgrid, (), {}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(MADE)))
def test_functions_that_make_arrays(case: int) -> None:
    function, args, options = MADE[case]
    try:
        plugrad.set_default_dtype(plugrad.float64)  # array-api-strict's
        compare(lambda lib: function(lib)(*args, **options))
    finally:
        plugrad.set_default_dtype(plugrad.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_what_is_made(dtype: str) -> None:
    for name in ("zeros", "ones", "empty"):
        assert getattr(xp, name)((2,), dtype=getattr(xp, dtype)).dtype is getattr(plugrad, dtype)
    if dtype != "bool":
        compare(lambda lib: lib.arange(1, 7, 2, dtype=getattr(lib, dtype)))
        compare(lambda lib: lib.full((2,), 2, dtype=getattr(lib, dtype)))


@pytest.mark.parametrize(("a", "b"), pairs()[::3])
def test_mixed_dtypes_promote_by_the_standard(a: str, b: str) -> None:
    x, y = numbers(a, 3), numbers(b, 1)[0]
    for call in (
        lambda lib, x, y: lib.result_type(x, y),
        lambda lib, x, y: lib.can_cast(x.dtype, y.dtype),
        lambda lib, x, y: lib.where(x == x[0], x, y),
        lambda lib, x, y: lib.concat([x, lib.reshape(y, (1,))]),
    ):
        compare(call, x, y)
    if "bool" not in (a, b):
        compare(lambda lib, x, y: lib.vecdot(x, lib.broadcast_to(y, (3,))), x, y)


def test_unsigned_sums_are_unsigned() -> None:
    x = xp.ones(3, dtype=xp.uint8)
    assert xp.sum(x).dtype is xp.uint64
    assert xp.cumulative_prod(x).dtype is xp.uint64
    assert xp.sum(x, dtype=xp.uint16).dtype is xp.uint16


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side: Any) -> None:
    row, values = np.array([1.0, 2.0, 2.0, 5.0]), np.array([[0.0, 2.0], [3.0, 9.0]], np.float32)
    compare(lambda lib, a, b: lib.searchsorted(a, b, side=side), row, values)
    compare(
        lambda lib, a, b, c: lib.searchsorted(a, b, side=side, sorter=c),
        row[::-1], values, np.array([3, 2, 1, 0]),
    )  # fmt: skip
    assert xp.searchsorted(xp.asarray([1, 3]), 2).tolist() == 1


def test_nans_are_distinct() -> None:
    nan = float("nan")
    x = xp.asarray([nan, 1.0, nan, 1.0])
    values, indices, inverse, counts = xp.unique_all(x)
    assert (values.tolist()[0], counts.tolist()) == (1.0, [2, 1, 1])
    assert (indices.tolist(), inverse.tolist()) == ([1, 0, 2], [1, 0, 2, 0])
    assert xp.isin(x, x).tolist() == [False, True, False, True]


def test_complex_numbers_are_sorted_by_real_parts_first() -> None:
    x = xp.asarray([1 + 2j, 0j, 1 - 1j, 0j])
    assert xp.unique_values(x).tolist() == [0j, 1 - 1j, 1 + 2j]
    assert xp.sort(x, descending=True).tolist() == [1 + 2j, 1 - 1j, 0j, 0j]


def test_arrays_in_sequences_keep_their_gradients() -> None:
    a, b = (plugrad.tensor(float(n), requires_grad=True) for n in (2, 3))
    made = xp.asarray([[a, 1.0], [b, a]])
    assert made.tolist() == [[2.0, 1.0], [3.0, 2.0]]
    xp.sum(made * made).backward()
    assert (a.grad, b.grad) == (plugrad.tensor(8.0), plugrad.tensor(6.0))
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray([a, b], copy=False)


@pytest.mark.parametrize("name", sorted({name for name, dtypes, _ in CUBES if "float64" in dtypes}))
def test_functions_are_differentiable(name: str) -> None:
    ours = [call for each, dtypes, call in CUBES if each == name and "float64" in dtypes]
    x = plugrad.tensor(numbers("float64", 2, 3, 2), requires_grad=True)
    x = (x + plugrad.arange(12.0, dtype=plugrad.float64).reshape(2, 3, 2) / 31).detach()
    x.requires_grad_()

    def loss(x: plugrad.Tensor, call: Call) -> Any:
        found = call(xp, x)
        parts = found if isinstance(found, (tuple, list)) else [found]
        real = [part for part in parts if part.dtype.is_floating_point and part.requires_grad]
        return real or None

    for call in ours:
        if loss(x, call) is not None:
            assert gradcheck(lambda x, call=call: tuple(loss(x, call)), (x,))


def functions(namespace: Any) -> list[str]:
    return [
        name
        for name in getattr(namespace, "__all__", dir(namespace))
        if inspect.isfunction(getattr(namespace, name)) and "strict" not in name
    ]


@pytest.mark.parametrize("part", ["", "linalg", "fft"])
def test_signatures_are_the_standard_s(part: str) -> None:
    theirs, ours = ((getattr(lib, part) if part else lib) for lib in (strict, xp))
    own = {n for n in functions(theirs) if "array_api_strict" in getattr(theirs, n).__module__}
    for name in own - {"normalize_axis_tuple", "requires_api_version", "requires_extension"}:
        if name.startswith("get_") or not hasattr(ours, name):
            assert name.startswith(("get_", "_", "reshape", "conj", "finfo"))
            continue
        expected, found = (
            [
                (p.name, p.kind, p.default)
                for p in inspect.signature(getattr(lib, name)).parameters.values()
            ]
            for lib in (theirs, ours)
        )
        for theirs_is, ours_is in zip(expected, found, strict=True):
            assert ours_is[:2] == theirs_is[:2], name
            # array-api-strict marks some defaults as not given, where the standard has None.
            given = type(theirs_is[2]).__name__ != "Undef"
            assert ours_is[2] == theirs_is[2] if given else ours_is[2] is None, name
        assert inspect.getdoc(getattr(ours, name))
