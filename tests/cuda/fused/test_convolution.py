"""Convolution and its gradients are the CPU's, in one, two and three dimensions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.cuda.emulation.runtime import Emulation
from tests.cuda.fused.against_cpu import DTYPES, check, random

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Images, filters, and how these go over those; 0 is no padding, 1 each step by default."""

    x: Ints
    weight: Ints
    stride: Ints = ()
    padding: Ints = ()
    dilation: Ints = ()
    groups: int = 1
    transposed: bool = False
    output_padding: Ints = ()

    def windows(self) -> tuple[Ints, Ints, Ints]:
        ndim = len(self.x) - 2
        return (
            self.stride or (1,) * ndim,
            self.padding or (0,) * ndim,
            self.dilation or (1,) * ndim,
        )


CASES = {
    "line": Case((2, 3, 9), (4, 3, 3)),
    "line, all": Case((2, 4, 11), (6, 2, 3), (2,), (2,), (2,), 2),
    "image": Case((2, 3, 7, 6), (5, 3, 3, 2)),
    "image, all": Case((2, 4, 9, 8), (6, 2, 3, 2), (2, 3), (1, 2), (2, 1), 2),
    "image, one tap": Case((2, 3, 5, 5), (4, 3, 1, 1)),
    "image, whole": Case((2, 3, 4, 5), (4, 3, 4, 5)),
    "depthwise": Case((2, 6, 6, 6), (6, 1, 3, 3), padding=(1, 1), groups=6),
    "many filters": Case((1, 2, 4, 4), (70, 2, 3, 3)),
    "many channels": Case((1, 70, 3, 4), (3, 70, 2, 2)),
    "many places": Case((3, 2, 14, 13), (3, 2, 3, 3), padding=(1, 1)),
    "stride leaves a rest": Case((1, 2, 8, 9), (2, 2, 2, 2), (3, 4)),
    "volume": Case((2, 2, 4, 5, 3), (3, 2, 2, 3, 2)),
    "volume, all": Case((1, 4, 5, 4, 6), (4, 2, 2, 2, 3), (1, 2, 2), (1, 0, 1), (2, 1, 2), 2),
    "transposed line": Case((2, 3, 5), (3, 4, 3), (2,), transposed=True, output_padding=(1,)),
    "transposed image": Case((2, 4, 3, 4), (4, 3, 3, 2), (2, 3), (1, 0), (1, 2), 2, True, (1, 1)),
    "transposed volume": Case((1, 2, 2, 3, 2), (2, 3, 2, 2, 2), transposed=True),
    "no images": Case((0, 3, 5, 5), (4, 3, 3, 3)),
}


def convolve(
    run: Emulation, case: Case, dtype: str, mask: tuple[bool, bool, bool] = (True, True, True)
) -> Any:
    x, weight = random(case.x, dtype), random(case.weight, dtype, 1)
    filters = case.weight[1] * case.groups if case.transposed else case.weight[0]
    output_padding = case.output_padding or (0,) * (len(case.x) - 2)
    how = (*case.windows(), case.transposed)
    for bias in (random((filters,), dtype, 2), None):
        out = check(run, "convolution", x, weight, bias, *how, output_padding, case.groups)
    grad = random(out.shape, dtype, 3)
    return check(run, "convolution_backward", grad, x, weight, *how, case.groups, mask)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(emulation: Emulation, name: str) -> None:
    convolve(emulation, CASES[name], "float64")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["image, all", "transposed image"])
def test_dtypes(emulation: Emulation, name: str, dtype: str) -> None:
    convolve(emulation, CASES[name], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["image, all", "transposed image"])
def test_positions_of_64_bits(
    emulation: Emulation, name: str, dtype: str, positions_of_64_bits: None
) -> None:
    before = emulation.launched.copy()
    convolve(emulation, CASES[name], dtype)
    launched = {k for k in emulation.launched - before if k.startswith("convolve")}
    assert launched
    assert all("i64" in name for name in launched)


@pytest.mark.parametrize("mask", list(itertools.product((True, False), repeat=3)))
def test_gradients_that_are_wanted(emulation: Emulation, mask: tuple[bool, bool, bool]) -> None:
    found = convolve(emulation, CASES["image"], "float64", mask)
    assert tuple(part is not None for part in found) == mask


def test_long_sums_are_shared_between_blocks(emulation: Emulation) -> None:
    before = emulation.launched["finish_columns<double, double>"]
    convolve(emulation, Case((4, 2, 17, 16), (3, 2, 2, 2)), "float64", (False, True, False))
    assert emulation.launched["finish_columns<double, double>"] == before + 1


def test_any_strides(emulation: Emulation) -> None:
    x = random((6, 7, 3, 2), "float64").T[:, :, ::-1]
    weight = random((2, 3, 3, 8), "float64").T[::2]
    bias = np.ones((), np.float64) + np.zeros(8)[::2]
    how = ((1, 1), (0, 0), (1, 1), False)
    out = check(emulation, "convolution", x, weight, bias, *how, (0, 0), 1)
    grad = random(out.T.shape, "float64").T
    check(emulation, "convolution_backward", grad, x, weight, *how, 1, (True, True, True))
