"""How far exp, log, tanh and erf are from the true values, in units of the last place.

The oracle for float32 is float64; for float64 it is the processor's longer float, if it has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("plugrad_native.compiled")


def errors(found: np.ndarray[Any, Any], true: np.ndarray[Any, Any]) -> float:
    """The largest error, in units of the last place of the true values."""
    unit = np.spacing(np.abs(true.astype(found.dtype))).astype(true.dtype)
    return float(np.max(np.abs(found.astype(true.dtype) - true) / unit))


def numbers(dtype: str, limit: float) -> np.ndarray[Any, Any]:
    """Both signs, all magnitudes, and the range where functions bend more densely."""
    generator = np.random.default_rng(5)
    small = np.exp(generator.uniform(np.log(np.finfo(dtype).tiny), 0, 20000))
    found = np.concatenate([small, generator.uniform(0, 2, 50000), np.linspace(0, limit, 50000)])
    return np.concatenate([found, -found]).astype(dtype)


LONGER = {"float32": np.dtype(np.float64), "float64": np.dtype(np.longdouble)}


@pytest.mark.parametrize("dtype", LONGER)
def test_exp(kernels: Any, dtype: str) -> None:
    x = numbers(dtype, 88 if dtype == "float32" else 709)
    assert errors(kernels.exp(x), np.exp(x.astype(LONGER[dtype]))) <= 1.2
    # Down to subnormal numbers.
    low = np.linspace(-103, -87, 5000) if dtype == "float32" else np.linspace(-745, -708, 5000)
    assert (
        errors(
            kernels.exp(low.astype(dtype)),
            np.exp(low.astype(dtype, copy=False).astype(LONGER[dtype])),
        )
        <= 1.2
    )


def test_log(kernels: Any) -> None:
    # Every 97th number there is, those without all their digits among them.
    x = np.arange(1, 0x7F800000, 97, dtype=np.uint32).view(np.float32)
    assert errors(kernels.log(x), np.log(x.astype(np.float64))) <= 1.0
    ends = np.array([0, -0.0, -1, -1e-40, np.inf, -np.inf, np.nan, 1], np.float32)
    true = np.array([-np.inf, -np.inf, np.nan, np.nan, np.inf, np.nan, np.nan, 0], np.float32)
    np.testing.assert_array_equal(kernels.log(ends), true)


@pytest.mark.parametrize("dtype", LONGER)
def test_tanh(kernels: Any, dtype: str) -> None:
    x = numbers(dtype, 20)
    assert errors(kernels.tanh(x), np.tanh(x.astype(LONGER[dtype]))) <= 1.5


def test_erf(kernels: Any) -> None:
    special = pytest.importorskip("scipy.special")
    x = numbers("float32", 5)
    assert errors(kernels.erf(x), special.erf(x.astype(np.float64))) <= 1.5


@pytest.mark.parametrize("dtype", LONGER)
def test_sigmoid(kernels: Any, dtype: str) -> None:
    x = numbers(dtype, 80)
    with np.errstate(over="ignore"):
        true = 1 / (1 + np.exp(-x.astype(LONGER[dtype])))
    assert errors(kernels.sigmoid(x), true) <= 2.5


@pytest.mark.parametrize("dtype", LONGER)
def test_ends(kernels: Any, dtype: str) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e4, -1e4, -0.0], dtype)
    np.testing.assert_array_equal(np.abs(kernels.exp(x)), [np.inf, 0, np.nan, np.inf, 0, 1])
    ones = [1, -1, np.nan, 1, -1, 0]
    for function in (kernels.tanh, kernels.erf):
        np.testing.assert_array_equal(function(x), ones)
        assert np.signbit(function(x))[5]
    np.testing.assert_array_equal(kernels.sigmoid(x), [1, 0, np.nan, 1, 0, 0.5])


@pytest.mark.parametrize("dtype", LONGER)
@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1])
def test_pow(kernels: Any, plain: Any, dtype: str, exponent: Any) -> None:
    x = np.concatenate([numbers(dtype, 80), np.array([np.inf, -np.inf, np.nan, 0, -0.0], dtype)])
    with np.errstate(all="ignore"):
        true = plain["pow.Tensor_Scalar"](x, exponent)
    for found in (kernels.pow(x, exponent), kernels.pow(x, float(exponent))):
        if exponent == 3:
            np.testing.assert_allclose(found, true, rtol=np.finfo(dtype).eps)
        else:
            np.testing.assert_array_equal(found, true)
    for other in (1.5, -2, True, 10**400, 2 + 0j, None):
        assert kernels.pow(x, other) is NotImplemented
