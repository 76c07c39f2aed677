"""layer_norm, batch_norm and their gradients are the CPU's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plugrad_cuda.fused import kernels
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.fused.against_cpu import DTYPES, check, random

MASKS = list(itertools.product((True, False), repeat=3))
# Input and normalised shape: short and long rows, many rows.
LAYERS = [
    ((4, 3), (3,)),
    ((3,), (3,)),
    ((2, 3, 4), (3, 4)),
    ((2, 5, 33), (33,)),
    ((3, 1100), (1100,)),
    ((700, 5), (5,)),
]
BATCHES = [(4, 3), (2, 3, 5), (2, 3, 5, 6), (1, 70, 2, 2), (3, 2, 40, 40), (1, 3)]


def layer(run: Emulation, shape: tuple[int, ...], sizes: tuple[int, ...], dtype: str) -> None:
    x, weight, bias = random(shape, dtype), random(sizes, dtype, 1), random(sizes, dtype, 2)
    for w, b in itertools.product((weight, None), (bias, None)):
        _, mean, rstd = check(run, "native_layer_norm", x, sizes, w, b, 1e-5)
        check(
            run,
            "native_layer_norm_backward",
            *(random(shape, dtype, 3), x, sizes, mean, rstd, w, b, (True, True, True)),
        )


@pytest.mark.parametrize(("shape", "sizes"), LAYERS)
def test_layer_norm(emulation: Emulation, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    layer(emulation, shape, sizes, "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_dtypes(emulation: Emulation, dtype: str) -> None:
    layer(emulation, (6, 35), (35,), dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_layer_norm_of_narrow_input_with_float32_parameters(
    emulation: Emulation, dtype: str
) -> None:
    x, weight, bias = random((6, 35), dtype), random((35,), seed=1), random((35,), seed=2)
    _, mean, rstd = check(emulation, "native_layer_norm", x, (35,), weight, bias, 1e-5)
    check(
        emulation,
        "native_layer_norm_backward",
        *(random((6, 35), dtype, 3), x, (35,), mean, rstd, weight, bias, (True, True, True)),
    )


@pytest.mark.parametrize("mask", MASKS)
def test_layer_norm_gives_the_gradients_that_are_wanted(
    emulation: Emulation, mask: tuple[bool, bool, bool]
) -> None:
    x, weight, bias = random((4, 3)), random((3,), seed=1), random((3,), seed=2)
    _, mean, rstd = check(emulation, "native_layer_norm", x, (3,), weight, bias, 1e-5)
    check(
        emulation,
        "native_layer_norm_backward",
        *(random((4, 3), seed=3), x, (3,), mean, rstd, weight, bias, mask),
    )


def test_layer_norm_of_any_strides(emulation: Emulation) -> None:
    x, weight = random((5, 8)).T, random((10,), seed=1)[::2]
    _, mean, rstd = check(emulation, "native_layer_norm", x, (5,), weight, weight, 1e-5)
    check(
        emulation,
        "native_layer_norm_backward",
        *(random((5, 8), seed=3).T, x, (5,), mean, rstd, weight, weight, (True, True, True)),
    )


def test_layer_norm_of_a_large_mean(emulation: Emulation) -> None:
    x = random((3, 64)) + np.float32(1000)
    found, _, _ = kernels({}, emulation)["native_layer_norm"](x, (64,), None, None, 1e-5)
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(1, keepdims=True)) / exact.std(1, keepdims=True)
    # The mean of squares less the square of the mean would be off by 0.06.
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-3)


def test_layer_norm_of_no_rows(emulation: Emulation) -> None:
    check(emulation, "native_layer_norm", random((0, 3)), (3,), None, None, 1e-5)


def batch(run: Emulation, shape: tuple[int, ...], dtype: str, parameters: str) -> None:
    x = random(shape, dtype)
    weight, bias, mean = (random(shape[1:2], parameters, seed) for seed in (1, 2, 3))
    var = np.abs(random(shape[1:2], parameters, 4)) + mean.dtype.type(0.5)
    grad = random(shape, dtype, 5)
    for training, (w, b) in itertools.product((True, False), ((weight, bias), (None, None))):
        with np.errstate(all="ignore"):
            _, center, invstd = check(
                run, "native_batch_norm", x, w, b, mean, var, training, 0.1, 1e-5
            )
            for mask in ((True, True, True), (False, True, False), (True, False, False)):
                args = (grad, x, w, mean, var, center, invstd, training, 1e-5, mask)
                check(run, "native_batch_norm_backward", *args)


@pytest.mark.parametrize("shape", BATCHES)
def test_batch_norm(emulation: Emulation, shape: tuple[int, ...]) -> None:
    batch(emulation, shape, "float32", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norm_dtypes(emulation: Emulation, dtype: str) -> None:
    narrow = dtype in ("float16", "bfloat16")
    batch(emulation, (4, 3, 5), dtype, "float32" if narrow else dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norm_positions_of_64_bits(
    emulation: Emulation, dtype: str, positions_of_64_bits: None
) -> None:
    before = emulation.launched.copy()
    batch(emulation, (4, 3, 5), dtype, dtype)
    assert all("i64" in name for name in emulation.launched - before)


def test_batch_norm_spares_sums_that_nothing_needs(emulation: Emulation) -> None:
    grad, x, weight = random((4, 3)), random((4, 3), seed=1), np.abs(random((3,)))
    before = emulation.launched.copy()
    rest = (weight, weight, weight, None, None, False, 1e-5, (True, False, False))
    check(emulation, "native_batch_norm_backward", grad, x, *rest)
    assert (emulation.launched - before).total() == 1


def test_batch_norm_without_running_statistics(emulation: Emulation) -> None:
    x = random((4, 3, 5))
    check(emulation, "native_batch_norm", x, None, None, None, None, True, 0.1, 1e-5)
