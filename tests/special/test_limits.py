"""Derivatives where a formula would divide by zero: they are the limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import special

EULER = 0.5772156649015329


def number(value: float) -> plugrad.Tensor:
    return plugrad.tensor(value, dtype=plugrad.float64)


def derivatives(function: Callable[[Any], Any], at: float, count: int) -> list[float]:
    x = number(at).requires_grad_()
    value = function(x)
    found = []
    for _ in range(count):
        (value,) = plugrad.autograd.grad(value, x, create_graph=True)
        found.append(value.item())
    return found


def by_name(name: str, *before: Any, result: str = "") -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        value = getattr(special, name)(*before, x)
        return getattr(value, result) if result else value

    function.__name__ = f"{name}{before}"
    return function


# A function, where, and its derivatives there from their series.
LIMITS: list[tuple[Callable[[Any], Any], float, list[float]]] = [
    (by_name("entr"), 0.0, [math.inf]),
    (by_name("sinc"), 0.0, [0.0]),
    (by_name("spherical_bessel_j0"), 0.0, [0.0, -1 / 3, 0.0, 1 / 5]),
    (by_name("bessel_j1"), 0.0, [0.5, 0.0, -3 / 8]),
    (by_name("i1"), 0.0, [0.5, 0.0, 3 / 8]),
    (by_name("i0e"), 0.0, [0.0]),
    (by_name("i1e"), 0.0, [0.5]),
    (by_name("exprel"), 0.0, [1 / 2, 1 / 3, 1 / 4]),
    (by_name("rgamma"), 0.0, [1.0, 2 * EULER]),
    (by_name("rgamma"), -2.0, [2.0]),
    (by_name("ellipk"), 0.0, [math.pi / 8, 9 * math.pi / 64]),
    (by_name("ellipe"), 0.0, [-math.pi / 8, -3 * math.pi / 64]),
    (by_name("ellipkinc", number(1.0)), 0.0, [(1 - math.sin(1) * math.cos(1)) / 4]),
    (
        by_name("ellipj", number(1.0), result="sn"),
        0.0,
        [-math.cos(1) * (1 - math.sin(1) * math.cos(1)) / 4],
    ),
    (
        by_name("ellipj", number(1.0), result="sn"),
        1.0,
        [-(math.sinh(1) * math.cosh(1) - 1) / (4 * math.cosh(1) ** 2)],
    ),
    (by_name("spence"), 1.0, [-1.0, 1 / 2, -2 / 3]),
    (by_name("lambertw"), 0.0, [1.0, -2.0, 9.0]),
    (by_name("boxcox", number(2.0)), 0.0, [math.log(2) ** 2 / 2, math.log(2) ** 3 / 3]),
    (by_name("boxcox", number(0.0)), 2.0, [1 / 4]),
    (by_name("inv_boxcox", number(2.0)), 0.0, [-2 * math.exp(2)]),
    (by_name("sici", result="si"), 0.0, [1.0, 0.0, -1 / 3]),
    (by_name("shichi", result="shi"), 0.0, [1.0, 0.0, 1 / 3]),
    (by_name("betainc", 1.0, 3.0), 0.0, [3.0, -6.0]),
    (by_name("gammainc", number(1.0)), 0.0, [1.0, -1.0]),
    (by_name("struve", 0.0), 0.0, [2 / math.pi]),
    (by_name("spherical_jn", 1), 0.0, [1 / 3, 0.0]),
    (lambda x: special.chebyshev_polynomial_u(x, 3), 1.0, [20.0]),
    (lambda x: special.xlogy(x, number(0.0)), 0.0, [0.0]),
    (lambda x: special.xlog1py(x, number(-1.0)), 0.0, [0.0]),
]


@pytest.mark.parametrize(("function", "at", "expected"), LIMITS)
def test_limit(function: Callable[[Any], Any], at: float, expected: list[float]) -> None:
    found = derivatives(function, at, len(expected))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["bessel_j1_quotient", "sin_quotient"])
def test_branches_of_a_quotient_join(name: str) -> None:
    """Where the polynomial ends, values and three derivatives go on."""
    from plugrad_special.formulas import quotients

    function = getattr(quotients, name)
    below = derivatives(function, 1 - 1e-9, 3)
    above = derivatives(function, 1 + 1e-9, 3)
    assert below == pytest.approx(above, rel=1e-7)


def _far_out(x: float, signs: int) -> tuple[float, float]:
    """The sum of (1/2)_m (signs / x^2)^m over m > 0, and its derivative: DLMF 7.12.1."""
    term, total, slope = 1.0, 0.0, 0.0
    for m in range(1, 12):
        term *= signs * (m - 0.5) / x**2
        total += term
        slope -= 2 * m * term / x
    return total, slope


@pytest.mark.parametrize("dtype", [plugrad.float32, plugrad.float64])
@pytest.mark.parametrize("at", [20.0, 100.0, 1e4])
def test_differences_do_not_cancel_far_out(at: float, dtype: plugrad.dtype) -> None:
    tolerance = 1e-5 if dtype is plugrad.float32 else 1e-12
    factor = 2 / math.sqrt(math.pi)
    for name, signs, scale in (("erfcx", -1, factor), ("dawsn", 1, -1.0)):
        x = plugrad.tensor(at, dtype=dtype, requires_grad=True)
        (first,) = plugrad.autograd.grad(getattr(special, name)(x), x, create_graph=True)
        (second,) = plugrad.autograd.grad(first, x)
        expected = [scale * value for value in _far_out(at, signs)]
        assert [first.item(), second.item()] == pytest.approx(expected, rel=tolerance), name
    x = plugrad.tensor(at, dtype=dtype, requires_grad=True)
    (slope,) = plugrad.autograd.grad(plugrad.imag(special.wofz(x)), x)
    assert slope.item() == pytest.approx(-factor * _far_out(at, 1)[0], rel=tolerance)


def test_wofz_is_a_bell_curve_on_the_real_axis() -> None:
    x = plugrad.tensor([0.5, 7.5, 9.0, 20.0, 1e3], dtype=plugrad.float64, requires_grad=True)
    (slope,) = plugrad.autograd.grad(plugrad.real(special.wofz(x)).sum(), x)
    expected = [-2 * v * math.exp(-v * v) for v in x.tolist()]
    assert slope.tolist() == pytest.approx(expected, rel=1e-12, abs=0)


def test_spence_beside_its_singularity() -> None:
    x = plugrad.tensor([1e-10, 1e-7], requires_grad=True)
    (slope,) = plugrad.autograd.grad(special.spence(x).sum(), x)
    assert slope.tolist() == pytest.approx([-23.02585, -16.1180973], rel=1e-6)


def test_incomplete_gamma_functions_have_no_gradient_where_they_have_no_value() -> None:
    for function in (special.gammainc, special.gammaincc):
        x = plugrad.tensor([-1.0, 0.0], requires_grad=True)
        (slope,) = plugrad.autograd.grad(function(1, x).sum(), x)
        assert math.isnan(slope[0].item())
        assert abs(slope[1].item()) == 1.0


def test_derivatives_of_principal_values_are_nan() -> None:
    y = plugrad.tensor([-0.5, 0.5], dtype=plugrad.float64, requires_grad=True)
    for function in (
        lambda: special.elliprc(3.0, y),
        lambda: special.elliprj(1.0, 2.0, 3.0, y),
    ):
        value = function()
        (slope,) = plugrad.autograd.grad(value.sum(), y)
        assert value.isfinite().all()
        assert slope.isnan().tolist() == [True, False]


def test_a_power_that_is_small_has_an_accurate_derivative() -> None:
    y = plugrad.tensor(3.0, requires_grad=True)
    (slope,) = plugrad.autograd.grad(special.powm1(plugrad.tensor(1e-3), y), y)
    assert slope.item() == pytest.approx(1e-9 * math.log(1e-3), rel=1e-5)


def test_the_gradient_of_xlog1py_scales_the_cotangent_first() -> None:
    """60000 / 0.75 exceeds float16; half of it does not."""
    y = plugrad.tensor(-0.25, dtype=plugrad.float16, requires_grad=True)
    special.xlog1py(60000.0, y).backward(plugrad.tensor(0.5, dtype=plugrad.float16))
    assert y.grad is not None
    assert y.grad.item() == 40000.0
