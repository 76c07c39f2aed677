"""First and second derivatives of every function, against finite differences."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck
from plugrad_special.cases import Row
from tests.special.inputs import arguments, leaves, of_leaves, rows


@pytest.mark.parametrize("row", rows())
def test_real(row: Row) -> None:
    values = arguments(row)
    function = of_leaves(row, values)
    assert leaves(values)
    assert gradcheck(function, leaves(values))
    assert gradgradcheck(function, leaves(values))


@pytest.mark.parametrize("row", rows(lambda row: row.complex))
def test_complex(row: Row) -> None:
    values = arguments(row, "complex128")
    function = of_leaves(row, values)
    assert gradcheck(function, leaves(values))
    assert gradgradcheck(function, leaves(values))


@pytest.mark.parametrize("row", rows(lambda row: len(row.ranges) > 1))
def test_broadcast(row: Row) -> None:
    """The gradient of each operand has its shape."""
    values = arguments(row, shape=(3, 1))
    first = next(i for i, v in enumerate(values) if isinstance(v, plugrad.Tensor))
    values[first] = values[first].detach()[0, 0].requires_grad_(values[first].requires_grad)
    assert gradcheck(of_leaves(row, values), leaves(values), check_batched_grad=False)


def test_the_scaled_bessel_function_is_not_holomorphic() -> None:
    z = plugrad.tensor([1 + 2j, -1.5 + 0.5j], dtype=plugrad.complex128, requires_grad=True)
    assert gradcheck(lambda z: plugrad.special.ive(1.5, z), [z])
    assert gradgradcheck(lambda z: plugrad.special.ive(1.5, z), [z])


@pytest.mark.parametrize("m", [-2.0, 0.0, 0.3])
def test_incomplete_integrals_over_several_half_turns(m: float) -> None:
    phi = plugrad.tensor([-7.0, 2.0, 10.0], dtype=plugrad.float64, requires_grad=True)
    parameter = plugrad.full((3,), m, dtype=plugrad.float64, requires_grad=True)
    assert gradcheck(plugrad.special.ellipkinc, [phi, parameter])
    assert gradcheck(plugrad.special.ellipeinc, [phi, parameter])


@pytest.mark.parametrize("name", ["rgamma", "polygamma"])
def test_left_of_the_axis(name: str) -> None:
    z = plugrad.tensor([-2.3 + 0.5j, -0.4 - 1j], dtype=plugrad.complex128, requires_grad=True)
    function = getattr(plugrad.special, name)
    call = (lambda z: function(2, z)) if name == "polygamma" else function
    assert gradcheck(call, [z])
