"""Dtypes, shapes, numbers in place of tensors, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import special
from plugrad_special.cases import Row, differentiable
from tests.special.inputs import arguments, function_of, rows


def results(value: Any) -> list[plugrad.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("row", rows())
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_floating_dtype_stays(row: Row, dtype: str) -> None:
    wide = arguments(row)
    values = [
        v.detach().to(getattr(plugrad, dtype)) if isinstance(v, plugrad.Tensor) else v for v in wide
    ]
    complex_dtype = {"float64": plugrad.complex128}.get(dtype, plugrad.complex64)
    for found, expected in zip(
        results(function_of(row)(*values)), results(function_of(row)(*wide)), strict=True
    ):
        wanted = complex_dtype if expected.is_complex() else getattr(plugrad, dtype)
        assert found.dtype is wanted
        if dtype == "float32":
            np.testing.assert_allclose(
                found.numpy(), expected.detach().numpy(), rtol=2e-4, atol=1e-5
            )


@pytest.mark.parametrize("row", rows())
def test_integers_give_the_default_dtype(row: Row) -> None:
    values = [
        plugrad.ones(2, dtype=plugrad.int64) if isinstance(v, plugrad.Tensor) else v
        for v in arguments(row)
    ]
    for found in results(function_of(row)(*values)):
        assert found.dtype in (plugrad.float32, plugrad.complex64)


@pytest.mark.parametrize("kind", "tuvw")
def test_shifted_polynomials_of_small_integers_do_not_wrap_around(kind: str) -> None:
    function = getattr(special, f"shifted_chebyshev_polynomial_{kind}")
    small = plugrad.tensor([0, 1, 200], dtype=plugrad.uint8)
    wide = plugrad.tensor([0.0, 1.0, 200.0], dtype=plugrad.float64)
    expected = function(wide, plugrad.tensor(3)).numpy()
    np.testing.assert_allclose(function(small, plugrad.tensor(3)).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("row", rows())
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_shapes(row: Row, shape: tuple[int, ...]) -> None:
    for found in results(function_of(row)(*arguments(row, shape=shape))):
        assert found.shape == shape
        assert found.requires_grad


@pytest.mark.parametrize("row", rows(lambda row: len(row.ranges) > 1))
def test_numbers_stand_for_tensors(row: Row) -> None:
    values = arguments(row, shape=())
    places = [i for i, v in enumerate(values) if isinstance(v, plugrad.Tensor)]
    expected = function_of(row)(*values)
    for kept in [i for i in places if values[i].is_floating_point()]:
        given = [v.item() if i in places and i != kept else v for i, v in enumerate(values)]
        for found, wanted in zip(results(function_of(row)(*given)), results(expected), strict=True):
            assert found.item() == pytest.approx(wanted.item(), rel=1e-12)


@pytest.mark.parametrize("row", rows(lambda row: not row.complex and row.name != "log_expit"))
def test_complex_numbers_are_refused_by_name(row: Row) -> None:
    values = [
        v.detach().to(plugrad.complex64) if isinstance(v, plugrad.Tensor) else v
        for v in arguments(row)
    ]
    if row.name == "ive":
        values[0] = plugrad.tensor([0.5, 1j])
        with pytest.raises(NotImplementedError, match="argument 1 must be real"):
            function_of(row)(*values)
        return
    with pytest.raises((NotImplementedError, RuntimeError)):
        function_of(row)(*values)


def without_derivative(row: Row) -> bool:
    return any(not differentiable(entry) for entry in row.ranges)


@pytest.mark.parametrize("row", rows(without_derivative))
def test_a_derivative_that_is_not_known_names_the_argument(row: Row) -> None:
    values = arguments(row)
    tensors = [v for v in values if isinstance(v, plugrad.Tensor)]
    for tensor, entry in zip(tensors, row.ranges, strict=True):
        if differentiable(entry) or not tensor.is_floating_point():
            continue
        tensor.requires_grad_()
        result = results(function_of(row)(*values))[0]
        loss = plugrad.real(result).sum() if result.is_complex() else result.sum()
        with pytest.raises(NotImplementedError, match=r"the derivative for '.*: .*' is not impl"):
            loss.backward()
        tensor.requires_grad_(False)


def test_shapes_that_do_not_fit() -> None:
    message = r"The size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton"
    with pytest.raises(RuntimeError, match=message):
        special.gammainc(plugrad.ones(3), plugrad.ones(2))


def test_a_tensor_is_needed() -> None:
    with pytest.raises(TypeError, match="one of the arguments v, z must be Tensor"):
        special.jv(1, 2.0)
    with pytest.raises(TypeError, match=r"argument 'input' \(position 1\) must be Tensor"):
        special.gammaln(2.0)


def test_orders_that_are_refused() -> None:
    x = plugrad.ones(2)
    with pytest.raises(RuntimeError, match=r"polygamma\(n, x\) does not support negative n."):
        special.polygamma(-1, x)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        special.multigammaln(x, 0)
    with pytest.raises(RuntimeError, match="the order n must not be negative, got -1"):
        special.spherical_jn(-1, x)
    with pytest.raises(RuntimeError, match="branch 1 is not real anywhere"):
        special.lambertw(x, 1)


def test_branches_of_lambert_w() -> None:
    x = plugrad.tensor([-1.0, -math.exp(-1), -0.2, 1.0], dtype=plugrad.float64)
    principal, lower = special.lambertw(x), special.lambertw(x, -1)
    assert principal.isnan().tolist() == [True, False, False, False]
    assert lower.isnan().tolist() == [True, False, False, True]
    np.testing.assert_allclose((lower * lower.exp())[1:3].numpy(), x[1:3].numpy(), rtol=1e-7)
    z = plugrad.tensor([1 + 2j], dtype=plugrad.complex128)
    w = special.lambertw(z, 3)
    np.testing.assert_allclose((w * w.exp()).numpy(), z.numpy(), rtol=1e-12)


def test_a_tensor_of_degrees() -> None:
    n = plugrad.tensor([[-1], [0], [3]])
    x = plugrad.tensor([0.5, -0.25], dtype=plugrad.float64)
    found = special.legendre_polynomial_p(x, n)
    np.testing.assert_allclose(found[:2].numpy(), [[0, 0], [1, 1]])
    np.testing.assert_allclose(found[2].numpy(), (5 * x**3 - 3 * x).numpy() / 2)


def test_results_by_name() -> None:
    result = special.airy(plugrad.zeros(1))
    assert result._fields == ("ai", "aip", "bi", "bip")
    assert special.ellipj(plugrad.zeros(1), 0.5)._fields == ("sn", "cn", "dn", "ph")


def test_a_result_that_nobody_used_has_no_part_in_the_gradient() -> None:
    x = plugrad.tensor(1.0, dtype=plugrad.float64, requires_grad=True)
    special.sici(x).ci.backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(math.cos(1.0))


def test_the_out_argument() -> None:
    out = plugrad.empty(2)
    assert special.jv(0, plugrad.zeros(2), out=out) is out
    assert out.tolist() == [1.0, 1.0]
