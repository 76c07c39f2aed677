"""Convolution and pooling on JAX: every rank and mode, ties and nan. The oracle is the CPU."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import plugrad

CONVOLUTIONS = [
    # spatial sizes, kernel, stride, padding, dilation, transposed, output padding, groups
    ((9,), (3,), (2,), (1,), (2,), False, (0,), 1),
    ((5, 6), (3, 2), (2, 1), (1, 0), (1, 2), False, (0, 0), 2),
    ((4, 4, 5), (2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2), False, (0, 0, 0), 1),
    ((5,), (3,), (3,), (2,), (1,), True, (2,), 1),
    ((4, 5), (3, 2), (2, 3), (1, 2), (2, 1), True, (1, 0), 2),
    ((3, 2, 3), (2, 2, 3), (2, 1, 2), (0, 1, 1), (1, 2, 1), True, (1, 0, 1), 2),
]


def with_gradients(device: str, function: Any, *values: Any) -> list[Any]:
    """The result, and the gradients of a weighted sum of it."""
    given = [plugrad.tensor(value).to(device).requires_grad_() for value in values]
    out = function(*given)
    weights = plugrad.tensor(np.random.default_rng(1).random(out.shape), dtype=out.dtype)
    (out * weights.to(device)).sum().backward()
    return [out.detach().cpu().numpy(), *(tensor.grad.cpu().numpy() for tensor in given)]


def assert_same(function: Any, *values: Any) -> None:
    pairs = zip(
        with_gradients("jax", function, *values),
        with_gradients("cpu", function, *values),
        strict=True,
    )
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case: tuple[Any, ...]) -> None:
    sizes, kernel, *how, transposed, output_padding, groups = case
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, *sizes)).astype(np.float32)
    filters = (4, 6 // groups) if transposed else (6, 4 // groups)
    weight = rng.standard_normal((*filters, *kernel)).astype(np.float32)
    bias = rng.standard_normal(6).astype(np.float32)

    def convolve(x: Any, weight: Any, bias: Any) -> Any:
        return plugrad.convolution(x, weight, bias, *how, transposed, output_padding, groups)

    assert_same(convolve, x, weight, bias)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "up"),
    [(2, 2, 0, 1, False), (3, 2, 1, 1, True), ((3, 2), 1, (1, 0), 2, False), (9, 4, 4, 1, True)],
)
def test_max_pooling(kernel: Any, stride: Any, padding: Any, dilation: Any, up: bool) -> None:
    x = np.random.default_rng(0).integers(-3, 3, (2, 2, 11, 10)).astype(np.float32)

    def pool(x: Any) -> Any:
        return plugrad.max_pool2d(x, kernel, stride, padding, dilation, up)

    assert_same(pool, x)


@pytest.mark.parametrize(("size", "kernel"), [((4, 6), 2), ((12, 12), 9)])
def test_the_first_maximum_and_the_last_nan_are_pointed_at(size: Any, kernel: int) -> None:
    x = np.zeros((1, *size), np.float32)
    x[0, -2:, -2:] = np.nan
    on_jax, on_cpu = (
        plugrad.max_pool2d_with_indices(plugrad.tensor(x).to(device), kernel, 1, kernel // 2)
        for device in ("jax", "cpu")
    )
    np.testing.assert_array_equal(on_jax[0].cpu().numpy(), on_cpu[0].numpy())
    np.testing.assert_array_equal(on_jax[1].cpu().numpy(), on_cpu[1].numpy())


def test_a_window_without_a_number_points_at_its_first_element(torch_oracle: Any) -> None:
    x = np.full((1, 4, 4), -np.inf, np.float32)
    ours = plugrad.max_pool2d_with_indices(plugrad.tensor(x).to("jax"), 3, 2, 1)[1]
    theirs = torch_oracle.nn.functional.max_pool2d(
        torch_oracle.tensor(x), 3, 2, 1, return_indices=True
    )[1]
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    ("include", "up", "divisor"), list(itertools.product([False, True], [False, True], [None, 3]))
)
def test_average_pooling(include: bool, up: bool, divisor: int | None) -> None:
    x = np.random.default_rng(0).standard_normal((2, 2, 7, 8)).astype(np.float32)

    def pool(x: Any) -> Any:
        return plugrad.avg_pool2d(x, 3, 2, 1, up, include, divisor)

    assert_same(pool, x)
