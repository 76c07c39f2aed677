"""Special functions without SciPy (oracle: closed forms, identities), and what uses them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plugrad
from plugrad.ops.special_functions import plain
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite

X = np.array([0.05, 0.4, 1.0, 2.5, 7.0, 33.0])
EULER = 0.5772156649015329


class TestSpecialFunctions(OpSuite):
    cases = family_cases("special_functions")


def test_gamma_functions_have_their_values_at_whole_and_half_numbers() -> None:
    assert plain("lgamma")(np.array([0.5, 6.0, -1.0])) == pytest.approx(
        [math.log(math.pi) / 2, math.log(120), math.inf]
    )
    assert plain("digamma")(np.array([1.0, 0.5, 3.0])) == pytest.approx(
        [-EULER, -EULER - 2 * math.log(2), 1.5 - EULER], rel=1e-13
    )
    assert plain("polygamma")(1, np.array([1.0, 0.5])) == pytest.approx(
        [math.pi**2 / 6, math.pi**2 / 2], rel=1e-13
    )
    assert plain("polygamma")(3, np.array([1.0])) == pytest.approx([math.pi**4 / 15], rel=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_polygamma_obeys_the_recurrence(n: int) -> None:
    x = np.array([-3.3, -0.7, 0.2, 1.6, 14.9, 40.0])
    step = (-1) ** n * math.factorial(n) / x ** (n + 1)
    function = plain("polygamma")
    assert function(n, x + 1) - function(n, x) == pytest.approx(step, rel=1e-9, abs=1e-11)


def test_digamma_at_its_poles() -> None:
    found = plain("digamma")(np.array([0.0, -0.0, -1.0, -4.0]))
    assert found[:2].tolist() == [-math.inf, math.inf]
    assert np.isnan(found[2:]).all()


def test_erfinv_is_the_inverse_of_erf() -> None:
    y = np.array([-0.999999, -0.5, 1e-12, 1e-5, 0.1, 0.7, 0.99])
    found = plain("erfinv")(y)
    assert [math.erf(x) for x in found] == pytest.approx(y, rel=1e-12)
    edges = plain("erfinv")(np.array([1.0, -1.0, 0.0, 1.5]))
    assert edges[:3].tolist() == [math.inf, -math.inf, 0.0]
    assert np.isnan(edges[3])


def test_a_result_of_erfinv_may_be_scaled_in_place() -> None:
    x = plugrad.tensor([-0.5, 0.0, 0.9], dtype=plugrad.float64, requires_grad=True)
    y = x.erfinv()
    # The derivative of the inverse: 1 / erf'(y).
    expected = 2 / (2 / math.sqrt(math.pi) * (-(y.detach() ** 2)).exp())
    y.mul_(2.0)
    y.sum().backward()
    assert plugrad.allclose(x.grad, expected)


def test_incomplete_gamma_functions_of_whole_parameters_are_sums() -> None:
    for a in (1, 2, 5):
        upper = np.exp(-X) * sum(X**k / math.factorial(k) for k in range(a))
        parameter = np.full_like(X, a)
        assert plain("igammac")(parameter, X) == pytest.approx(upper, rel=1e-11)
        assert plain("igamma")(parameter, X) == pytest.approx(1 - upper, rel=1e-9)


def test_bessel_functions_are_integrals_of_exponentials() -> None:
    # The trapezoidal rule is exact for periodic functions, but for rounding.
    angles = np.arange(200) * (2 * math.pi / 200)
    for order, name in ((0, "i0"), (1, "i1")):
        waves = np.exp(X[:, None] * np.cos(angles)) * np.cos(order * angles)
        assert plain(name)(X) == pytest.approx(waves.mean(axis=1), rel=1e-12)
        assert plain(name)(-X) == pytest.approx((-1) ** order * waves.mean(axis=1), rel=1e-12)


def test_narrow_dtypes_compute_in_float32() -> None:
    x = plugrad.tensor([0.7, 3.3], dtype=plugrad.bfloat16)
    assert plugrad.equal(plugrad.lgamma(x), plugrad.lgamma(x.float()).bfloat16())
    assert plugrad.lgamma(x).dtype is plugrad.bfloat16


def test_forms_in_place_keep_the_dtype() -> None:
    x = plugrad.tensor([2.0, 3.0])
    assert x.polygamma_(0) is x
    assert x.tolist() == pytest.approx([1 - EULER, 1.5 - EULER])
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        plugrad.tensor([3]).mvlgamma_(2)


def test_there_is_no_derivative_by_the_parameter_of_an_incomplete_gamma_function() -> None:
    a = plugrad.tensor([1.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="igamma"):
        plugrad.igamma(a, plugrad.tensor([1.0])).backward()


def test_mantissa_and_exponent_make_the_number() -> None:
    x = plugrad.tensor([6.0, -0.3, 0.0], requires_grad=True)
    mantissa, exponent = plugrad.frexp(x)
    assert exponent.dtype is plugrad.int32
    assert plugrad.equal(plugrad.ldexp(mantissa, exponent), x)
    mantissa.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.125, 2.0, 1.0]


def test_the_number_after_itself_has_no_slope() -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    plugrad.nextafter(x, plugrad.tensor([1.0, 3.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0]
