"""What kernels look for on the device, and what they draw, with NumPy as their namespace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrad_cuda.kernels import array_kernels
from tests.cuda.host_namespace import HostGenerator, HostNamespace

WRONG: dict[str, tuple[Any, ...]] = {
    "gather": (np.ones(3), 0, np.array([3])),
    "index_select": (np.ones(3), 0, np.array([-1])),
    "index": (np.ones(3), [np.array([3])]),
    "take": (np.ones(3), np.array([3])),
    "embedding": (np.ones((3, 2)), np.array([3])),
    "floor_divide": (np.array([1]), np.array([0])),
    "remainder": (np.array([1]), np.array([0])),
    "bernoulli": (np.array([1.5]), HostGenerator(0)),
    "binary_cross_entropy": (np.array([1.5]), np.array([1.0]), None, "mean"),
    "nll_loss_forward": (np.ones((1, 3)), np.array([3]), None, "mean", -100),
    "one_hot": (np.array([3]), 3),
}
# Here the host's NumPy raises by itself, where CuPy would take another element.
RAISED_BY_NUMPY = {"gather", "index", "take", "embedding", "nll_loss_forward"}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_found(name: str) -> None:
    with pytest.raises((IndexError, RuntimeError)):
        array_kernels(HostNamespace())[name](*WRONG[name])


@pytest.mark.parametrize("name", sorted(WRONG.keys() - RAISED_BY_NUMPY))
def test_nothing_is_looked_for_where_nobody_may_wait(name: str) -> None:
    ns = HostNamespace()
    ns.check = False
    with np.errstate(all="ignore"):
        array_kernels(ns)[name](*WRONG[name])


def test_multinomial_draws_by_weight() -> None:
    draw = array_kernels(HostNamespace())["multinomial"]
    weights = np.array([[0.0, 1.0, 3.0, 0.0], [2.0, 0.0, 0.0, 2.0]])
    drawn = draw(weights, 4000, True, HostGenerator(0))
    shares = np.stack([np.bincount(row, minlength=4) for row in drawn]) / 4000
    np.testing.assert_allclose(shares, weights / weights.sum(1, keepdims=True), atol=0.03)
    assert (shares[weights == 0] == 0).all()


def test_multinomial_without_replacement_draws_each_once() -> None:
    draw = array_kernels(HostNamespace())["multinomial"]
    weights = np.array([[0.0, 1.0, 3.0, 0.5]] * 50)
    with np.errstate(divide="ignore"):
        drawn = draw(weights, 3, False, HostGenerator(0))
    assert (np.sort(drawn, 1) == [1, 2, 3]).all()


@pytest.mark.parametrize("total", [0, 1, 7, 1000])
def test_randperm_is_a_permutation(total: int) -> None:
    drawn = array_kernels(HostNamespace())["randperm"](total, HostGenerator(0), np.dtype("i8"), 0)
    assert np.sort(drawn).tolist() == list(range(total))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int64", "float16", "float32"])
def test_adding_at_one_place_often(dtype: str) -> None:
    table = array_kernels(HostNamespace())
    target = np.zeros(3, dtype)
    table["index_put_"](target, [np.array([1, 1, 1, 2])], np.ones(4, dtype), True)
    wanted = [0, 3, 1] if dtype != "bool" else [False, True, True]
    assert target.tolist() == wanted
