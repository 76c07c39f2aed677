"""What kernels look for on the device, and what they draw, with NumPy as their namespace."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

from plugrad.plugins import package_kernels
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
    "poisson": (np.array([-1.0]), HostGenerator(0)),
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


N = 20_000
# The kernel's arguments, and the quantiles at 0.25, 0.5 and 0.75 of what it draws, by SciPy.
DISTRIBUTIONS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "cauchy_": ((np.empty(N), 1.0, 2.0), stats.cauchy(1, 2)),
    "log_normal_": ((np.empty(N), 0.5, 0.25), stats.lognorm(0.25, scale=np.exp(0.5))),
    "geometric_": ((np.empty(N), 0.05), stats.geom(0.05)),
    "poisson": ((np.full(N, 30.0),), stats.poisson(30)),
    "binomial": ((np.full(N, 40.0), np.full(N, 0.3)), stats.binom(40, 0.3)),
    "_standard_gamma": ((np.full(N, 0.7),), stats.gamma(0.7)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_have_their_distribution(name: str) -> None:
    args, distribution = DISTRIBUTIONS[name]
    drawn = array_kernels(HostNamespace())[name](*args, HostGenerator(0))
    for point in distribution.ppf([0.25, 0.5, 0.75]):
        assert (drawn <= point).mean() == pytest.approx(distribution.cdf(point), abs=0.015)


def test_shares_of_a_dirichlet_distribution_have_their_means() -> None:
    alpha = np.tile([1.0, 2.0, 5.0], (N, 1))
    drawn = array_kernels(HostNamespace())["_sample_dirichlet"](alpha, HostGenerator(0))
    np.testing.assert_allclose(drawn.sum(1), 1)
    np.testing.assert_allclose(drawn.mean(0), [0.125, 0.25, 0.625], atol=0.01)


def test_parameters_at_the_ends_of_their_range() -> None:
    table = array_kernels(HostNamespace())
    count = np.array([3.0, 3.0, 0.0, np.nan, 3.0])
    prob = np.array([1.0, 0.0, 0.5, 0.5, np.nan])
    drawn = table["binomial"](count, prob, HostGenerator(0))
    np.testing.assert_array_equal(drawn, [3, 0, 0, np.nan, np.nan])
    shapes = np.array([0.0, -1.0], np.float32)
    gamma = table["_standard_gamma"](shapes, HostGenerator(0))
    np.testing.assert_array_equal(gamma, np.array([np.finfo("f4").tiny, np.nan], np.float32))


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


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", ml_dtypes.bfloat16])
def test_what_is_unique_is_the_cpus(dtype: Any) -> None:
    a = np.array([[3, 1, 0], [1, 3, 3]]).astype(dtype).T
    cpu = package_kernels("plugrad_cpu.kernels")["_unique2"]
    ours = array_kernels(HostNamespace())["_unique2"]
    for found, wanted in zip(ours(a, True, True, True), cpu(a, True, True, True), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    if a.dtype.kind == "f":
        values = np.array([np.nan, 2, np.nan, -0.0, 0.0], dtype)
        assert ours(values, True, False, True)[2].tolist() == [2, 1, 1, 1]
