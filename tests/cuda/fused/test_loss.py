"""nll_loss and its gradient are the CPU's; targets out of range are seen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plugrad_cuda.fused import kernels
from tests.cuda.emulation.runtime import Emulation, EmulationError
from tests.cuda.fused.against_cpu import DTYPES, check, indices, random

REDUCTIONS = ("mean", "sum", "none")
SHAPES = [(5,), (4, 5), (3, 4, 2), (2, 3, 4, 5), (40, 3), (1100, 3), (40000, 2)]


def target_of(shape: tuple[int, ...]) -> np.ndarray:
    if len(shape) == 1:
        return indices((), shape[0])
    return indices((shape[0], *shape[2:]), shape[1])


def loss(run: Emulation, shape: tuple[int, ...], dtype: str, ignored: int, reduction: str) -> None:
    x, target = random(shape, dtype), np.asarray(target_of(shape))
    classes = shape[1] if len(shape) > 1 else shape[0]
    for weight in (None, np.abs(random((classes,), dtype, 1))):
        _, total = check(run, "nll_loss_forward", x, target, weight, reduction, ignored)
        grad = random(target.shape if reduction == "none" else (), dtype, 2)
        args = (grad, x, target, weight, reduction, ignored, total)
        check(run, "nll_loss_backward", *args)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(emulation: Emulation, shape: tuple[int, ...], reduction: str) -> None:
    loss(emulation, shape, "float64", -100, reduction)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_dtypes(emulation: Emulation, dtype: str, reduction: str) -> None:
    loss(emulation, (20, 5), dtype, -100, reduction)


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_of_64_bits(emulation: Emulation, dtype: str, positions_of_64_bits: None) -> None:
    before = emulation.launched.copy()
    loss(emulation, (3, 4, 5), dtype, -100, "mean")
    launched = [name for name in emulation.launched - before if "backward" in name]
    assert launched
    assert all("i64" in name for name in launched)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_ignored_targets(emulation: Emulation, reduction: str) -> None:
    loss(emulation, (20, 5), "float32", 2, reduction)
    target = np.array([-1, 1, -1])
    for weight in (None, np.ones(4, np.float32)):
        check(emulation, "nll_loss_forward", random((3, 4)), target, weight, reduction, -1)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_no_targets(emulation: Emulation, reduction: str) -> None:
    x, target = random((0, 3)), indices((0,), 3)
    check(emulation, "nll_loss_forward", x, target, None, reduction, -100)


def test_all_ignored_is_nan(emulation: Emulation) -> None:
    with np.errstate(all="ignore"):
        found = check(
            emulation, "nll_loss_forward", random((2, 3)), np.full(2, -1), None, "mean", -1
        )
    assert np.isnan(found[0])


@pytest.mark.parametrize("bad", [-1, 3])
def test_target_out_of_range_ends_the_kernel(emulation: Emulation, bad: int) -> None:
    table = kernels({}, emulation)
    x, target = random((2, 3)), np.array([0, bad])
    with pytest.raises(EmulationError, match="trap"):
        table["nll_loss_forward"](x, target, None, "mean", -100)
    with pytest.raises(EmulationError, match="trap"):
        table["nll_loss_backward"](x[0, 0], x, target, None, "mean", -100, x[0, 0] + 1)


@pytest.mark.parametrize("bad", [-1, 3])
def test_target_out_of_range_is_an_error_when_checked(emulation: Emulation, bad: int) -> None:
    table = kernels({}, Emulation(check=True))
    x, target = random((2, 3)), np.array([0, bad])
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds."):
        table["nll_loss_forward"](x, target, None, "mean", -100)


def test_any_strides(emulation: Emulation) -> None:
    x, target = random((5, 8)).T, indices((16,), 5)[::2]
    for reduction, kind in itertools.product(REDUCTIONS, (None, random((5,)))):
        check(emulation, "nll_loss_forward", x, target, kind, reduction, -100)
