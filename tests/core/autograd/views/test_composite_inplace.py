"""In-place operators that are made of others: gradients may need what they overwrite."""

from __future__ import annotations

from typing import Any

import pytest


def linear(lib: Any, n: int, m: int) -> Any:
    return lib.arange(1.0, n * m + 1, dtype=lib.float64).reshape(n, m)


def linear_in_the_target(lib: Any) -> dict[str, Any]:
    """In-place operators on tensors of two rows, and of what the gradient is twice that."""
    matrix, vector = linear(lib, 2, 2), linear(lib, 1, 2)[0]
    return {
        "addmv": lambda x: x.reshape(4).clone().addmv_(linear(lib, 4, 2), vector, alpha=2),
        "addbmm": lambda x: x.clone().addbmm_(matrix[None], matrix[None], beta=1, alpha=2),
        "baddbmm": lambda x: x.clone()[None].clone().baddbmm_(matrix[None], matrix[None]),
    }


@pytest.mark.parametrize("name", ["addmv", "addbmm", "baddbmm"])
def test_those_linear_in_the_target(lib: Any, name: str) -> None:
    x = linear(lib, 2, 2).requires_grad_()
    y = linear_in_the_target(lib)[name](x * 3)
    (first,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    assert lib.allclose(first.reshape(-1), 6 * y.reshape(-1))
    (second,) = lib.autograd.grad(first.sum(), x)
    assert lib.allclose(second, lib.full_like(x, 18.0))


def test_one_that_needs_what_it_overwrites(lib: Any) -> None:
    x = linear(lib, 2, 2).requires_grad_()
    y = (x * 3).square_()
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert lib.allclose(first, 18 * x)
    assert lib.allclose(second, lib.full_like(x, 18.0))


def test_addbmm_resizes_what_broadcasts(lib: Any) -> None:
    x = lib.tensor([5.0])
    assert x.addbmm_(lib.ones(2, 2, 3), lib.ones(2, 3, 2)) is x
    assert lib.equal(x, lib.full((2, 2), 11.0))
