"""Kernels go round until all is done, however few blocks a grid is cut down to."""

from __future__ import annotations

import pytest

from tests.cuda.emulation.build import compiler
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.fused.against_cpu import check, indices, random


@pytest.fixture(scope="module")
def one_block() -> Emulation:
    if compiler() is None:
        pytest.skip("there is no C++ compiler")
    return Emulation(most_blocks=1)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("shape", [(11, 70), (3, 1100)])
def test_softmax(one_block: Emulation, name: str, dim: int, shape: tuple[int, int]) -> None:
    x = random(shape)
    out = check(one_block, name, x, dim, False)
    check(one_block, f"{name}_backward_data", random(shape, seed=1), out, dim, x.dtype)


@pytest.mark.parametrize("shape", [(600, 40), (3, 1100)])
def test_layer_norm(one_block: Emulation, shape: tuple[int, int]) -> None:
    x, weight, width = random(shape), random(shape[1:]), shape[1:]
    _, mean, rstd = check(one_block, "native_layer_norm", x, width, weight, weight, 1e-5)
    grad, mask = random(shape, seed=1), (True, True, True)
    check(
        one_block,
        "native_layer_norm_backward",
        *(grad, x, width, mean, rstd, weight, weight, mask),
    )


def test_batch_norm(one_block: Emulation) -> None:
    x, weight = random((4, 70, 5)), random((70,))
    args = (weight, weight, weight, abs(weight), True)
    _, mean, invstd = check(one_block, "native_batch_norm", x, *args, 0.1, 1e-5)
    rest = (weight, weight, abs(weight), mean, invstd, True, 1e-5, (True, True, True))
    check(one_block, "native_batch_norm_backward", random(x.shape, seed=1), x, *rest)


def test_embedding(one_block: Emulation) -> None:
    rows = indices((300,), 70)
    out = check(one_block, "embedding", random((70, 33)), rows)
    check(one_block, "embedding_dense_backward", out, rows, 70, -1, True)


def test_pooling(one_block: Emulation) -> None:
    x, window = random((2, 3, 20, 20)), ((3, 2), (2, 1), (1, 1), (1, 1), (10, 21))
    best, places = check(one_block, "max_pool2d_with_indices", x, *window)
    check(one_block, "max_pool2d_with_indices_backward", best, x.shape, places, *window)
    mean = check(one_block, "avg_pool2d", x, *window, True, None)
    check(one_block, "avg_pool2d_backward", mean, x.shape, *window, True, None)


def test_convolution(one_block: Emulation) -> None:
    x, weight = random((2, 4, 12, 13), "float64"), random((140, 2, 3, 3), "float64", 1)
    how = ((1, 1), (1, 1), (1, 1), False)
    out = check(one_block, "convolution", x, weight, None, *how, (0, 0), 2)
    check(one_block, "convolution_backward", out, x, weight, *how, 2, (True, True, True))
