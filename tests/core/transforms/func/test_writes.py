"""Writes in place to views and their bases, inside of transforms. Oracle: PyTorch; where PyTorch
takes an operand as it was after the write, finite differences."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from tests.core.transforms.func.outcomes import outcome


def view_then_base(lib: Any, x: Any) -> Any:
    y = x.clone()
    row = y[0]
    row.mul_(x[1])
    y.mul_(x)
    return (row * y).sum()


def base_then_view(lib: Any, x: Any) -> Any:
    y = x * 1
    flat = y.view(-1)
    y.add_(x)
    flat[1:].mul_(2)
    return (flat**2).sum() + (y**3).sum()


def diagonal(lib: Any, x: Any) -> Any:
    y = x.clone()
    along = y.diagonal()
    along.copy_(x[0] * 2)
    turned = y.t()
    turned.mul_(3)
    return (along * turned[0]).sum()


def into_zeros(lib: Any, x: Any) -> Any:
    y = lib.zeros(2, 2)
    row = y[0]
    row.copy_(x[0])
    y.mul_(x)
    row.add_(x[1])
    return (y**2).sum()


def geometry(lib: Any, x: Any) -> Any:
    y = x.clone()
    other = y.unsqueeze(0)
    other.squeeze_(0)
    other.mul_(x)
    y.t_()
    return (y * x).sum()


def strided(lib: Any, x: Any) -> Any:
    y = x.clone()
    y.as_strided((2,), (3,)).mul_(x[0])
    return (y**2).sum()


def argument(lib: Any, x: Any) -> Any:
    x[0].mul_(2)
    return (x * x).sum()


FUNCTIONS = [view_then_base, base_then_view, diagonal, into_zeros, geometry, strided, argument]
BATCHED = [view_then_base, base_then_view, diagonal, geometry, strided]
TRANSFORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "grad": lambda lib, f, x: lib.func.grad(f)(x),
    "jvp": lambda lib, f, x: lib.func.jvp(f, (x,), (x * 0.5,)),
    "jacfwd": lambda lib, f, x: lib.func.jacfwd(f)(x),
    "hessian": lambda lib, f, x: lib.func.hessian(f)(x),
    "jacrev of jacfwd": lambda lib, f, x: lib.func.jacrev(lib.func.jacfwd(f))(x),
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes(torch_oracle: ModuleType, transform: str, function: Callable[..., Any]) -> None:
    def program(lib: Any) -> Any:
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        return TRANSFORMS[transform](lib, lambda x: function(lib, x), x)

    assert outcome(plugrad, program) == outcome(torch_oracle, program)


@pytest.mark.parametrize("function", BATCHED, ids=lambda function: function.__name__)
@pytest.mark.parametrize("transform", ["grad", "jacfwd"])
def test_writes_of_each_element_of_a_batch(
    torch_oracle: ModuleType, transform: str, function: Callable[..., Any]
) -> None:
    def program(lib: Any) -> Any:
        x = lib.tensor([[[1.0, 2.0], [3.0, 4.0]], [[2.0, 3.0], [4.0, 5.0]]])
        of_one = getattr(lib.func, transform)(lambda x: function(lib, x))
        return lib.func.vmap(of_one)(x)

    expected = outcome(torch_oracle, program)
    assert isinstance(expected, list)
    assert outcome(plugrad, program) == expected


def test_an_operand_that_is_written_to_counts_as_it_was() -> None:
    def f(x: Any) -> Any:
        x = x.sin()
        x.view(4)[::2].mul_(x.view(4)[1::2])
        return x.mul_(x).sum()

    x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=plugrad.float64)
    found = plugrad.func.jacfwd(f)(x)
    step = plugrad.eye(4, dtype=plugrad.float64).view(4, 2, 2) * 1e-6
    differences = [(f(x + s) - f(x - s)).item() / 2e-6 for s in step]
    assert found.flatten().tolist() == pytest.approx(differences, rel=1e-6)
