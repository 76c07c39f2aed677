"""Functions composed of exp, log, floor and similar ones are as accurate as kernels, also in edge
cases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from tests.core.ops.decompositions.bare_backend import BareBackend, bare_backend, primitives_of

CORNERS = [
    *(0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 22.0, 0.46875, 0.9999999, 1.0000001),
    *(2.0**52 + 1, 2.0**52 - 0.5, 0.49999999999999994, np.inf),
]


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[str]:
    with bare_backend("core") as name:
        yield name


def numbers(dtype: str) -> Any:
    """Both signs of all magnitudes, many of them where functions bend, and what is no number."""
    rng = np.random.default_rng(0)
    low, high = (-300, 308) if dtype == "float64" else (-37, 38)
    magnitudes = np.concatenate(
        [
            10.0 ** np.linspace(low, high, 300),
            rng.uniform(0, 2, 500),
            rng.uniform(0, 40, 300),
            rng.uniform(0, 800, 200),
            CORNERS,
        ]
    )
    with np.errstate(over="ignore"):
        return np.concatenate([magnitudes, -magnitudes, [np.nan]]).astype(dtype)


def assert_as_accurate(found: Any, expected: Any, units: float) -> None:
    """Equal up to some units in the last place; zeros with their signs."""
    assert found.dtype == expected.dtype
    limits = np.finfo(expected.dtype)
    # The rest of what is subnormal is rounded more coarsely than relative to its size.
    np.testing.assert_allclose(
        found, expected, rtol=units * float(limits.eps), atol=float(limits.tiny)
    )
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


UNARY = [
    *("exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "erf", "erfc"),
]
EXACT = ["abs", "sign", "sgn", "ceil", "trunc", "round", "frac"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*UNARY, *EXACT])
def test_functions_of_one_number(name: str, dtype: str, device: str) -> None:
    x = numbers(dtype)
    function = getattr(plugrad, name)
    found = function(plugrad.tensor(x, device=device)).cpu().numpy()
    # SciPy's erfc, which the CPU takes, loses three digits in the tail.
    expected = (
        np.array([math.erfc(v) for v in x]).astype(dtype)
        if name == "erfc"
        else function(plugrad.tensor(x)).numpy()
    )
    assert_as_accurate(found, expected, 0 if name in EXACT else 6)


@pytest.mark.parametrize("name", ["atan2", "hypot", "logaddexp", "remainder", "floor_divide"])
def test_functions_of_two_numbers(name: str, device: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5])
    x = numbers("float64")
    x, y = (
        np.concatenate([x, np.repeat(special, 8)]),
        np.concatenate([np.random.default_rng(1).permutation(x), np.tile(special, 8)]),
    )
    function = getattr(plugrad, name)
    found = function(*(plugrad.tensor(v, device=device) for v in (x, y))).cpu().numpy()
    expected = function(plugrad.tensor(x), plugrad.tensor(y)).numpy()
    if name == "logaddexp":
        # Near zero its terms cancel: the error is relative to them.
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize(
    "name", ["tanh", "sinh", "asin", "atanh", "log1p", "expm1", "exp2", "log2"]
)
def test_complex_numbers(name: str) -> None:
    rng = np.random.default_rng(2)
    z = rng.uniform(-0.9, 0.9, 200) + 1j * rng.uniform(-0.9, 0.9, 200)
    function = getattr(plugrad, name)
    with bare_backend("full") as full:
        found = function(plugrad.tensor(z, device=full)).cpu().numpy()
    np.testing.assert_allclose(found, function(plugrad.tensor(z)).numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["tanh", "expm1", "erf", "atan2", "logaddexp", "cumsum", "prod"])
def test_16_bit_numbers_are_computed_in_float32(name: str, dtype: str, device: str) -> None:
    x = plugrad.linspace(-2, 2, 33, dtype=plugrad.float64).to(getattr(plugrad, dtype))

    def compute(on: str) -> Any:
        operand = x.to(on)
        if name == "cumsum":
            return operand.cumsum(0)
        binary = name in ("atan2", "logaddexp")
        return getattr(plugrad, name)(*((operand, operand * 0.5) if binary else (operand,)))

    found = compute(device)
    assert found.dtype is x.dtype
    eps = plugrad.finfo(x.dtype).eps
    np.testing.assert_allclose(
        found.cpu().double().numpy(), compute("cpu").double().numpy(), rtol=eps, atol=eps
    )


def integers(dtype: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, 1, 2, 3, 7], dtype)
    some = rng.integers(limits.min, limits.max, 200, dtype=dtype, endpoint=True)
    near = rng.integers(1, min(limits.max, 2**40), 200).astype(dtype)
    first = np.concatenate([some, some, np.repeat(ends, 8)])
    second = np.concatenate([rng.permutation(some), near, np.tile(ends, 8)])
    return first, np.where(second == 0, np.array(1, dtype), second)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
@pytest.mark.parametrize(
    "name", ["floor_divide", "remainder", "truncated", "bitwise_and", "bitwise_or", "bitwise_xor"]
)
def test_integers_are_exact(name: str, dtype: str, device: str) -> None:
    def compute(on: str) -> Any:
        first, second = (plugrad.tensor(v, device=on) for v in integers(dtype))
        if name == "truncated":
            return plugrad.div(first, second, rounding_mode="trunc")
        return getattr(plugrad, name)(first, second)

    np.testing.assert_array_equal(compute(device).cpu().numpy(), compute("cpu").numpy())


class Single(BareBackend):
    """A device without float64, as some accelerators are."""

    def native_dtype(self, dtype: plugrad.dtype) -> Any:
        if dtype is plugrad.float64:
            raise TypeError("no float64")
        return super().native_dtype(dtype)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "bitwise_and", "bitwise_xor"])
def test_integers_are_exact_without_float64(name: str, dtype: str) -> None:
    # The least number of all divides nothing but itself without float64.
    first, second = (np.where(v == np.iinfo(dtype).min, 1, v) for v in integers(dtype))
    function = getattr(plugrad, name)
    activate_backend(Single("single", primitives_of("core")))
    try:
        found = function(*(plugrad.tensor(v, device="single") for v in (first, second)))
        host = found.cpu().numpy()
    finally:
        deactivate_backend("single")
    expected = function(plugrad.tensor(first), plugrad.tensor(second)).numpy()
    np.testing.assert_array_equal(host, expected)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8"])
@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts_are_those_of_the_cpu_up_to_all_bits(name: str, dtype: str, device: str) -> None:
    values = integers(dtype)[0][:, None]
    places = np.arange(np.iinfo(dtype).bits + 2).astype(dtype)

    def compute(on: str) -> Any:
        operands = (plugrad.tensor(v, device=on) for v in (values, places))
        return getattr(plugrad, name)(*operands)

    np.testing.assert_array_equal(compute(device).cpu().numpy(), compute("cpu").numpy())


def test_integers_are_not_divided_by_zero(device: str) -> None:
    one = plugrad.ones(2, dtype=plugrad.int64, device=device)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        one // 0


def test_numbers_times_alpha_need_no_kernel_for_numbers(device: str) -> None:
    x = plugrad.tensor([1.0, 2.0], device=device)
    assert plugrad.add(x, x, alpha=3).tolist() == [4.0, 8.0]
    assert plugrad.sub(x, 2, alpha=0.5).tolist() == [0.0, 1.0]
