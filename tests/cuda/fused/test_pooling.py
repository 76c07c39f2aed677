"""Pooling and its gradients are the CPU's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from plugrad_cuda.fused import pooling
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.fused.against_cpu import DTYPES, check, random

# Shape, kernel, step, padding, dilation, output: overlapping and disjoint, with gaps between
# windows, padded, dilated, windows that end outside (ceil_mode), one window for all.
WINDOWS: list[tuple[Any, ...]] = [
    ((2, 3, 6, 6), (2, 2), (2, 2), (0, 0), (1, 1), (3, 3)),
    ((2, 3, 7, 5), (3, 2), (1, 1), (1, 1), (1, 1), (7, 6)),
    ((3, 9, 8), (2, 3), (3, 4), (0, 1), (1, 1), (3, 2)),
    ((1, 2, 8, 8), (3, 3), (2, 2), (1, 1), (2, 2), (3, 3)),
    ((2, 2, 5, 5), (2, 2), (2, 2), (0, 0), (1, 1), (3, 3)),
    ((1, 1, 4, 6), (4, 6), (4, 6), (0, 0), (1, 1), (1, 1)),
    ((1, 2, 40, 40), (3, 3), (1, 1), (1, 1), (1, 1), (40, 40)),
    ((0, 2, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1), (2, 2)),
]


def pool(run: Emulation, window: tuple[Any, ...], dtype: str) -> None:
    shape, spread = window[0], window[4]
    x = random(shape, dtype)
    best, indices = check(run, "max_pool2d_with_indices", x, *window[1:])
    grad = random(best.shape, dtype, 1)
    check(run, "max_pool2d_with_indices_backward", grad, shape, indices, *window[1:])
    if spread == (1, 1):
        for with_padding, divisor in itertools.product((True, False), (None, 3)):
            rest = (*window[1:], with_padding, divisor)
            check(run, "avg_pool2d", x, *rest)
            check(run, "avg_pool2d_backward", grad, shape, *rest)


@pytest.mark.parametrize("window", WINDOWS)
def test_windows(emulation: Emulation, window: tuple[Any, ...]) -> None:
    pool(emulation, window, "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(emulation: Emulation, dtype: str) -> None:
    pool(emulation, WINDOWS[1], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_of_64_bits(emulation: Emulation, dtype: str, positions_of_64_bits: None) -> None:
    before = emulation.launched.copy()
    pool(emulation, WINDOWS[1], dtype)
    launched = (emulation.launched - before).keys()
    assert launched
    assert all("i64" in name for name in launched)


def test_equal_elements_and_nan(emulation: Emulation) -> None:
    x = np.array([[[1, 1, np.nan, 0], [1, 0, 2, np.nan]]], np.float32)
    window = ((2, 2), (1, 2), (0, 0), (1, 1), (1, 2))
    check(emulation, "max_pool2d_with_indices", x, *window)


def test_any_strides(emulation: Emulation) -> None:
    x = random((6, 7, 3, 2)).T[:, :, ::-1]
    check(emulation, "avg_pool2d", x, (2, 2), (2, 2), (0, 0), (1, 1), (3, 3), True, None)
    check(emulation, "max_pool2d_with_indices", x, (2, 2), (2, 2), (0, 0), (1, 1), (3, 3))


def test_integers_are_left_to_others(emulation: Emulation) -> None:
    x = np.zeros((1, 2, 2), np.int64)
    window = ((2, 2), (2, 2), (0, 0), (1, 1), (1, 1))
    kernel = pooling.LAUNCHERS["max_pool2d_with_indices"]
    assert kernel(emulation, x, *window) is NotImplemented
