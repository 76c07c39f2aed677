"""Reductions and scans composed of sums and maxima, on nan and on empty tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import flatten
from tests.core.ops.decompositions.bare_backend import bare_backend


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[str]:
    with bare_backend("core") as name:
        yield name


NAN, INF = math.nan, math.inf
ROWS = {
    "nan first": [[NAN, 1.0, 2.0], [3.0, NAN, NAN], [-1.0, -2.0, NAN]],
    "infinities": [[INF, -INF, 0.0], [INF, INF, 1.0], [-INF, -INF, -INF]],
    "ties": [[2.0, 2.0, 1.0], [0.0, -0.0, 0.0], [-1.0, -1.0, -1.0]],
    "large": [[1e300, 1e300, -1e300], [709.0, 710.0, 711.0], [-800.0, -900.0, -1000.0]],
    "small": [[1e-300, 1e-310, 0.0], [5e-324, 0.0, 0.0], [1.0, 1e-20, 1e-40]],
}
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(1),
    "amin of all": lambda x: x.amin(),
    "aminmax": lambda x: x.aminmax(dim=0),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "max along": lambda x: x.max(1),
    "min along": lambda x: x.min(0, keepdim=True),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(1, keepdim=True),
    "median": lambda x: x.median(),
    "median along": lambda x: x.median(1),
    "prod": lambda x: x.prod(),
    "prod along": lambda x: x.prod(1, keepdim=True),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(0),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "any": lambda x: x.any(1),
    "all": lambda x: x.all(),
    "count_nonzero": lambda x: x.count_nonzero(0),
    **{
        f"norm {order}": lambda x, order=order: plugrad.linalg.vector_norm(x, order, 1)
        for order in (0, 1, 2, 3, -1, INF, -INF)
    },
}


def assert_as_on_the_cpu(function: Callable[[Any], Any], values: Any, device: str) -> None:
    expected = flatten(function(plugrad.tensor(values)))
    found = flatten(function(plugrad.tensor(values, device=device)))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype is theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.cpu().numpy(), theirs.numpy(), rtol=1e-14)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_what_is_no_number_goes_as_in_kernels(name: str, rows: str, device: str) -> None:
    assert_as_on_the_cpu(REDUCTIONS[name], np.array(ROWS[rows]), device)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name[:4] not in ("norm", "logs")])
def test_integers_and_bools(name: str, dtype: str, device: str) -> None:
    if dtype == "bool" and name.startswith(("arg", "median")):
        return
    low = 0 if dtype in ("uint8", "bool") else np.iinfo(dtype).min
    high = 1 if dtype == "bool" else np.iinfo(dtype).max
    values = np.array([[low, 1, high], [high, high, 0], [low, low, 1]]).astype(dtype)
    assert_as_on_the_cpu(REDUCTIONS[name], values, device)


@pytest.mark.parametrize(
    "name", ["prod", "cumsum", "cumprod", "any", "all", "count_nonzero", "prod along"]
)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_has_a_neutral_result(name: str, shape: tuple[int, int], device: str) -> None:
    assert_as_on_the_cpu(REDUCTIONS[name], np.zeros(shape), device)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.amin(),
        lambda x: x.max(0),
        lambda x: x.argmin(),
        lambda x: x.median(0),
        lambda x: x.prod(),
        lambda x: x.cumsum(0),
        lambda x: x.logsumexp(0),
        lambda x: x.any(),
        lambda x: plugrad.linalg.vector_norm(x, 3),
    ],
)
def test_0_dim_tensors(function: Callable[[Any], Any], device: str) -> None:
    assert_as_on_the_cpu(function, np.array(-2.5), device)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 64, 65])
def test_scans_of_any_length(length: int, device: str) -> None:
    values = np.random.default_rng(length).uniform(0.5, 1.5, (2, length))
    for name in ("cumsum", "cumprod", "prod along"):
        assert_as_on_the_cpu(REDUCTIONS[name], values, device)


def test_classes_out_of_range_are_named(device: str) -> None:
    scores = plugrad.zeros(2, 3, device=device)
    with pytest.raises(IndexError, match=r"Target 5 is out of bounds\."):
        plugrad.nn.functional.nll_loss(scores, plugrad.tensor([0, 5], device=device))


def test_probabilities_out_of_range_are_refused(device: str) -> None:
    x = plugrad.tensor([0.5, 1.5], device=device)
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        plugrad.nn.functional.binary_cross_entropy(x, plugrad.zeros(2, device=device))
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        plugrad.nn.functional.binary_cross_entropy(plugrad.zeros(2, device=device), x)
