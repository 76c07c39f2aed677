"""Pooling beside plugrad-cpu's: windows of all kinds, inf and nan, layouts, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.nn.functional as F
from plugrad.plugins.windows import window_count
from plugrad.testing import assert_close

pytest.importorskip("plugrad_native.compiled")

Ints = tuple[int, ...]

# Shape; kernel, stride, padding, dilation; whether windows may reach over the end.
CASES: list[tuple[Ints, Ints, Ints, Ints, Ints, bool]] = [
    ((2, 3, 8, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((2, 3, 15, 17), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((2, 3, 9, 11), (3, 3), (1, 1), (1, 1), (1, 1), False),
    ((3, 9, 11), (2, 3), (3, 1), (1, 0), (1, 1), False),
    ((9, 11), (4, 5), (2, 3), (2, 2), (1, 1), True),
    ((2, 3, 7, 7), (2, 2), (2, 2), (0, 0), (1, 1), True),
    ((2, 3, 7, 6), (7, 6), (7, 6), (0, 0), (1, 1), False),
    ((2, 3, 7, 6), (1, 1), (3, 4), (0, 0), (1, 1), False),
    ((2, 3, 20, 30), (2, 2), (7, 5), (1, 1), (1, 1), False),
    ((2, 3, 20, 30), (3, 3), (2, 2), (1, 1), (2, 3), False),
    ((4, 5, 64, 64), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((2, 3, 6, 8, 10), (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False),
    ((2, 5, 7, 9), (3, 2, 3), (1, 2, 2), (1, 1, 1), (1, 1, 1), True),
    ((2, 5, 7, 9), (2, 3, 2), (2, 1, 2), (1, 1, 0), (2, 1, 3), False),
]
SIDE_BY_SIDE = [case for case in CASES if set(case[4]) == {1}]


def windows_of(case: Any) -> tuple[Ints, ...]:
    shape, kernel, stride, padding, dilation, over = case
    sizes = shape[len(shape) - len(kernel) :]
    along = zip(sizes, kernel, stride, padding, dilation, strict=True)
    out = tuple(window_count(*one, over) for one in along)
    return kernel, stride, padding, dilation, out


def same(found: Any, expected: Any) -> None:
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.flags.c_contiguous
    near = 1e-12 if found.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(found, expected, rtol=near, atol=near)


def filled(draw: Any, shape: Ints, kind: str) -> Any:
    x = np.round(2 * draw(*shape)) if kind == "ties" else draw(*shape)
    some = draw(*shape) > 0.5
    if kind == "nan":
        x[some] = np.nan
    elif kind == "-inf":
        x[draw(*shape) > -1] = -np.inf
    elif kind == "inf":
        x[some] = np.inf
    return x


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("kind", ["ties", "nan", "inf", "-inf"])
def test_max_pool_and_its_gradient(
    kernels: Any, plain: Any, draw: Any, case: Any, kind: str
) -> None:
    x, windows = filled(draw, case[0], kind), windows_of(case)
    name = f"max_pool{len(case[1])}d_with_indices"
    values, positions = plain[name](x, *windows)
    found, where = kernels.max_pool(x, *windows)
    same(found, values)
    np.testing.assert_array_equal(where, positions)
    assert where.dtype == np.int64
    grad = draw(*values.shape)
    backward = kernels.max_pool_backward(grad, x.shape, positions, *windows)
    same(backward, plain[f"{name}_backward"](grad, x.shape, positions, *windows))


@pytest.mark.parametrize("case", SIDE_BY_SIDE, ids=str)
@pytest.mark.parametrize("with_padding", [False, True])
@pytest.mark.parametrize("divisor", [None, 3, -2])
@pytest.mark.parametrize("kind", ["ties", "nan", "inf"])
def test_avg_pool_and_its_gradient(
    kernels: Any,
    plain: Any,
    draw: Any,
    case: Any,
    with_padding: bool,
    divisor: int | None,
    kind: str,
) -> None:
    x, windows = filled(draw, case[0], kind), windows_of(case)
    name = f"avg_pool{len(case[1])}d"
    expected = plain[name](x, *windows, with_padding, divisor)
    same(kernels.avg_pool(x, *windows, with_padding, divisor), expected)
    grad = filled(draw, expected.shape, kind)
    backward = kernels.avg_pool_backward(grad, x.shape, *windows, with_padding, divisor)
    rest = (x.shape, *windows, with_padding, divisor)
    same(backward, plain[f"{name}_backward"](grad, *rest))


@pytest.mark.parametrize("size", [5, 16, 33, 1000])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (4, 3, 2, 1), (2, 2, 1, 3), (1, 4, 0, 1)],
)
@pytest.mark.parametrize("kind", ["ties", "nan", "-inf"])
def test_max_pool1d(
    kernels: Any,
    plain: Any,
    draw: Any,
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    kind: str,
) -> None:
    x = filled(draw, (2, 3, size), kind)
    count = window_count(size, kernel, stride, padding, dilation)
    rest = (kernel, stride, padding, dilation, count)
    same(kernels.max_pool1d(x, *rest), plain["_max_pool1d"](x, *rest))


def test_many_windows_side_by_side_are_left_to_the_plain_kernel(kernels: Any, draw: Any) -> None:
    x = draw(4, 1 << 12)
    assert kernels.max_pool1d(x, 3, 1, 0, 1, (1 << 12) - 2) is NotImplemented
    assert kernels.max_pool1d(x, 3, 2, 0, 1, (1 << 11) - 1) is not NotImplemented


@pytest.mark.parametrize(
    ("shape", "stride", "served"),
    [
        ((8, 64, 14, 14), 2, False),
        ((8, 64, 12, 12), 1, False),
        ((8, 16, 32, 32), 2, True),
        ((2, 64, 14, 14), 2, True),
    ],
)
def test_few_additions_for_large_arrays_are_left_to_the_plain_kernel(
    kernels: Any, draw: Any, shape: Ints, stride: int, served: bool
) -> None:
    windows = windows_of((shape, (2, 2), (stride, stride), (0, 0), (1, 1), False))
    found = kernels.avg_pool(draw(*shape), *windows, True, None)
    assert (found is not NotImplemented) == served


WHOLE = ((2, 2), (2, 2), (0, 0), (1, 1), (4, 4))


@pytest.mark.parametrize(
    "lay",
    [
        lambda x: x.swapaxes(2, 3),
        lambda x: x[..., ::-1],
        lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1),
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: x[:0],
        lambda x: x.astype(np.float16),
        lambda x: x.astype(np.int64),
    ],
)
def test_other_arrays_are_left_to_the_plain_kernel(kernels: Any, draw: Any, lay: Any) -> None:
    x = lay(draw(2, 3, 8, 8))
    assert kernels.max_pool(x, *WHOLE) is NotImplemented
    assert kernels.avg_pool(x, *WHOLE, True, None) is NotImplemented


def test_gradients_may_lie_in_any_order(kernels: Any, draw: Any) -> None:
    grad, shape = draw(2, 3, 4, 4), (2, 3, 8, 8)
    positions = kernels.max_pool(draw(*shape), *WHOLE)[1]
    one = np.ones((), grad.dtype)
    for odd in (grad.swapaxes(2, 3), grad[..., ::-1], np.broadcast_to(one, grad.shape)):
        whole = odd.copy()
        same(
            kernels.max_pool_backward(odd, shape, positions, *WHOLE),
            kernels.max_pool_backward(whole, shape, positions, *WHOLE),
        )
        same(
            kernels.avg_pool_backward(odd, shape, *WHOLE, True, None),
            kernels.avg_pool_backward(whole, shape, *WHOLE, True, None),
        )


@pytest.mark.parametrize("position", [-1, 64, 2**62])
def test_positions_outside_are_left_to_the_plain_kernel(
    kernels: Any, draw: Any, position: int
) -> None:
    grad = draw(2, 3, 4, 4)
    positions = np.zeros(grad.shape, np.int64)
    positions[1, 2, 3, 3] = position
    found = kernels.max_pool_backward(grad, (2, 3, 8, 8), positions, *WHOLE)
    assert found is NotImplemented


@pytest.mark.parametrize(
    "windows",
    [
        ((2, 2), (2, 2), (2, 2), (1, 1), (4, 4)),  # more padding than half a window
        ((2, 2), (2, 2), (0, 0), (1, 1), (9, 4)),  # windows behind the end
        ((2, 2), (2, 2), (1, 1), (9, 1), (1, 4)),  # a window that reads padding alone
        ((2, 2), (0, 2), (0, 0), (1, 1), (4, 4)),
        ((2, 2), (2, 2), (0, 0), (1, 1), (0, 4)),
        ((2,), (2, 2), (0, 0), (1, 1), (4, 4)),
        ((2, 2, 2, 2),) * 5,
        ((2, 1 << 40), (2, 2), (0, 0), (1, 1), (4, 4)),
        ((2, 2.0), (2, 2), (0, 0), (1, 1), (4, 4)),
    ],
)
def test_odd_windows_are_left_to_the_plain_kernel(kernels: Any, draw: Any, windows: Any) -> None:
    x = draw(2, 3, 8, 8)
    assert kernels.max_pool(x, *windows) is NotImplemented
    assert kernels.avg_pool(x, *windows, True, None) is NotImplemented
    out = np.ones((2, 3, 4, 4), x.dtype)
    assert kernels.avg_pool_backward(out, x.shape, *windows, True, None) is NotImplemented


def test_a_divisor_of_zero_is_left_to_the_plain_kernel(kernels: Any, draw: Any) -> None:
    assert kernels.avg_pool(draw(2, 3, 8, 8), *WHOLE, True, 0) is NotImplemented


def pooled(x: Any, dtype: Any) -> list[Any]:
    x = x.detach().clone().to(dtype).requires_grad_()
    y = F.max_pool2d(x, 3, 2, 1)
    z = F.avg_pool2d(x, 2, padding=1, count_include_pad=False)
    v = F.max_pool1d(x.flatten(2), 3, 2)
    (y.sum() + (z * z).sum() + v.sum()).backward()
    return [y.detach(), z.detach(), v.detach(), x.grad]


@pytest.mark.usefixtures("native")
def test_gradients_go_through_them_on_any_number_of_threads() -> None:
    x = plugrad.randn(10, 16, 64, 64)
    with plugrad.config.set(disable=["plugrad-native", "native"]):
        expected = pooled(x, plugrad.float64)
    names = ["max_pool2d_with_indices", "max_pool2d_with_indices_backward"]
    names += ["avg_pool2d", "avg_pool2d_backward"]
    before = plugrad.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            plugrad.set_num_threads(threads)
            with plugrad.record_dispatch_trace() as events:
                results.append(pooled(x, plugrad.float32))
            ran = {event.op for event in events if event.kind == "variant"}
            assert {f"plugrad::{name}" for name in names} <= ran
    finally:
        plugrad.set_num_threads(before)
    for one, two, wide in zip(*results, expected, strict=True):
        assert_close(one, two, rtol=0, atol=0)
        assert_close(one.double(), wide, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("native")
def test_adaptive_pooling_comes_to_them() -> None:
    x = plugrad.randn(2, 3, 14, 14)
    with plugrad.record_dispatch_trace() as events:
        found = F.adaptive_avg_pool2d(x, 7)
    assert "plugrad::avg_pool2d" in {event.op for event in events if event.kind == "variant"}
    expected = x.reshape(2, 3, 7, 2, 7, 2).mean((3, 5))
    assert_close(found, expected, rtol=1e-5, atol=1e-6)
