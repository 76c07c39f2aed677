"""Batch normalisation beside plugrad-cpu's: shapes, layouts, inf and nan, running statistics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.nn.functional as F
from plugrad.testing import assert_close

pytest.importorskip("plugrad_native.compiled")

# Columns and runs, around the lengths of vectors and blocks, and what threads share.
SHAPES = [(1, 3), (2, 1), (40, 5), (33, 600), (3, 4, 1), (2, 3, 7), (2, 3, 1030), (4, 16, 9, 9)]
SHAPES += [(3, 2, 2, 3, 4), (16, 32, 14, 14), (600, 130)]


def channels_last(a: Any) -> Any:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)


def close(found: Any, expected: Any, wide: bool) -> None:
    assert len(found) == len(expected)
    near = 1e-11 if wide else 2e-4
    for mine, plain in zip(found, expected, strict=True):
        if plain is None:
            assert mine is None
            continue
        assert (mine.dtype, mine.shape) == (plain.dtype, plain.shape)
        assert min(plain.shape, default=0) < 2 or mine.strides == plain.strides
        np.testing.assert_allclose(mine, plain, rtol=near, atol=near)


def statistics(draw: Any, channels: int) -> tuple[Any, Any]:
    return draw(channels), np.abs(draw(channels)) + 1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels last"])
@pytest.mark.parametrize("training", [False, True], ids=["known", "training"])
@pytest.mark.parametrize("parameters", [False, True])
def test_batch_norm_and_its_gradients(
    kernels: Any,
    plain: Any,
    draw: Any,
    shape: tuple[int, ...],
    last: bool,
    training: bool,
    parameters: bool,
) -> None:
    lay = channels_last if last else np.ascontiguousarray
    x, grad, channels = lay(draw(*shape)), lay(draw(*shape)), shape[1]
    wide = x.dtype == np.float64
    weight, bias = (draw(channels), draw(channels)) if parameters else (None, None)
    mine, other = statistics(draw, channels), None
    other = tuple(one.copy() for one in mine)
    with np.errstate(all="ignore"):
        expected = plain["native_batch_norm"](x, weight, bias, *other, training, 0.3, 1e-3)
    found = kernels.batch_norm(x, weight, bias, *mine, training, 0.3, 1e-3)
    close(found, expected, wide)
    close(mine, other, wide)
    rest = (weight, *mine, *expected[1:], training, 1e-3)
    for mask in [(True, True, True), (True, False, False), (False, True, True), (False,) * 3]:
        expected = plain["native_batch_norm_backward"](grad, x, *rest, mask)
        close(kernels.batch_norm_backward(grad, x, *rest, mask), expected, wide)


@pytest.mark.parametrize("shape", [(12, 3), (4, 3, 6)])
@pytest.mark.parametrize("training", [False, True])
def test_inf_and_nan_stay_in_their_channels(
    kernels: Any, plain: Any, draw: Any, shape: tuple[int, ...], training: bool
) -> None:
    x = draw(*shape)
    x[1, 0], x[2, 1] = np.nan, np.inf
    stats = statistics(draw, 3)
    with np.errstate(all="ignore"):
        found = plain["native_batch_norm"](x, None, None, *stats, training, 0.1, 1e-5)
        mine = kernels.batch_norm(x, None, None, *stats, training, 0.1, 1e-5)
        np.testing.assert_allclose(mine[0], found[0], rtol=1e-5, atol=1e-5)
    assert np.isfinite(mine[0][:, 2]).all()


def test_a_single_value_has_no_unbiased_variance(kernels: Any, draw: Any) -> None:
    mean, var = statistics(draw, 3)
    kernels.batch_norm(draw(1, 3), None, None, mean, var, True, 0.5, 1e-5)
    assert np.isfinite(mean).all()
    assert np.isnan(var).all()


def test_running_statistics_may_be_missing_in_training_alone(kernels: Any, draw: Any) -> None:
    x, known = draw(6, 3), np.ones(3, draw(1).dtype)
    assert kernels.batch_norm(x, None, None, None, None, True, 0.1, 1e-5) is not NotImplemented
    for stats in ((None, None), (known, None), (None, known)):
        assert kernels.batch_norm(x, None, None, *stats, False, 0.1, 1e-5) is NotImplemented


def test_means_of_many_are_exact(kernels: Any) -> None:
    x = np.full((64, 2, 4096), 1000.1, np.float32)
    x[::2] += 1
    out, mean, rstd = kernels.batch_norm(x, None, None, None, None, True, 0.1, 0.0)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean((0, 2)), rtol=5e-7)
    np.testing.assert_allclose(rstd, 1 / wide.std((0, 2)), rtol=1e-3)
    assert math.isclose(float(out[0, 0, 0]), 1, rel_tol=1e-3)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 3, 0)])
def test_empty_arrays_are_left_to_the_plain_kernel(
    kernels: Any, draw: Any, shape: tuple[int, ...]
) -> None:
    x, stats = draw(*shape), statistics(draw, shape[1])
    assert kernels.batch_norm(x, None, None, *stats, True, 0.1, 1e-5) is NotImplemented


def test_layouts_that_differ_are_left_to_the_plain_kernel(kernels: Any, draw: Any) -> None:
    x, stats = draw(2, 3, 4, 5), statistics(draw, 3)
    rest = (None, *stats, *stats, True, 1e-5, (True, True, True))
    assert kernels.batch_norm_backward(channels_last(x), x, *rest) is NotImplemented
    assert kernels.batch_norm_backward(x, channels_last(x), *rest) is NotImplemented
    assert kernels.batch_norm(x[..., ::2], None, None, *stats, True, 0.1, 1e-5) is NotImplemented


def train(x: Any, training: bool, dtype: Any) -> list[Any]:
    x = x.detach().clone().to(dtype).requires_grad_()
    weight = plugrad.linspace(0.5, 2, 8, dtype=dtype).requires_grad_()
    bias = plugrad.linspace(-1, 1, 8, dtype=dtype).requires_grad_()
    mean, var = plugrad.zeros(8, dtype=dtype), plugrad.ones(8, dtype=dtype)
    y = F.batch_norm(x, mean, var, weight, bias, training)
    (y * y).sum().backward()
    return [y.detach(), x.grad, weight.grad, bias.grad, mean, var]


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("shape", [(32, 8), (16, 8, 64, 80)])
def test_a_layer_trains_through_them_on_any_number_of_threads(
    training: bool, shape: tuple[int, ...]
) -> None:
    x = plugrad.randn(*shape)
    with plugrad.config.set(disable=["plugrad-native", "native"]):
        expected = train(x, training, plugrad.float64)
    before = plugrad.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            plugrad.set_num_threads(threads)
            with plugrad.record_dispatch_trace() as events:
                results.append(train(x, training, plugrad.float32))
            ran = {event.op for event in events if event.kind == "variant"}
            assert {"plugrad::native_batch_norm", "plugrad::native_batch_norm_backward"} <= ran
    finally:
        plugrad.set_num_threads(before)
    for one, two, wide in zip(*results, expected, strict=True):
        assert_close(one, two, rtol=0, atol=0)
        assert_close(one.double(), wide, rtol=1e-3, atol=1e-3)
