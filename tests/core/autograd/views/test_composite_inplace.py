"""Composite in-place operators: gradients may need what they overwrite."""

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


# In-place operators that are compositions, on a transposed view of 1, 2, ... 6; and the gradient of
# the sum of the result, by the order of the base.
WRITTEN_TO_A_VIEW: dict[str, tuple[Any, list[float]]] = {
    "put": (lambda lib, x: x.put_(lib.tensor([0]), linear(lib, 1, 1)[0]), [0, 1, 1, 1, 1, 1]),
    "square": (lambda lib, x: x.square_(), [2, 4, 6, 8, 10, 12]),
    "celu": (lambda lib, x: lib.celu_(x), [1] * 6),
    "ldexp": (lambda lib, x: x.ldexp_(lib.tensor(2)), [4] * 6),
    "addr": (lambda lib, x: x.addr_(linear(lib, 1, 3)[0], linear(lib, 1, 2)[0]), [1] * 6),
    "addbmm": (lambda lib, x: x.addbmm_(linear(lib, 3, 2)[None], linear(lib, 2, 2)[None]), [1] * 6),
    "mvlgamma": (
        lambda lib, x: x.mvlgamma_(1),
        [-0.5772156649, 0.4227843351, 0.9227843351, 1.2561176684, 1.5061176684, 1.7061176684],
    ),
    "polygamma": (
        lambda lib, x: x.polygamma_(1),
        [-2.4041138063, -0.4041138063, -0.1541138063, -0.0800397323, -0.0487897323, -0.0327897323],
    ),
}


@pytest.mark.parametrize("name", WRITTEN_TO_A_VIEW)
def test_hooks_of_a_view_do_not_see_what_overwrites_it(lib: Any, name: str) -> None:
    write, expected = WRITTEN_TO_A_VIEW[name]
    leaf = linear(lib, 2, 3).requires_grad_()
    view = (leaf * 1).t()
    seen: list[Any] = []
    view.register_hook(seen.append)
    write(lib, view)
    view.sum().backward()
    assert not seen
    assert lib.allclose(leaf.grad.reshape(-1), lib.tensor(expected, dtype=lib.float64))


def test_a_refused_write_to_a_view_leaves_its_hooks(lib: Any) -> None:
    leaf = linear(lib, 2, 3).requires_grad_()
    view = (leaf * 1).t()
    view.register_hook(lambda grad: grad * 3)
    with pytest.raises(RuntimeError):
        view.addr_(lib.ones(7, dtype=lib.float64), lib.ones(2, dtype=lib.float64))
    view.sum().backward()
    assert lib.equal(leaf.grad, lib.full_like(leaf, 3.0))
