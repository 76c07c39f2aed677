"""Products of matrices of integers and without elements, as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck
from tests.core.ops.against_torch.edges import check


def integers(name: str, *shapes: tuple[int, ...], **factors: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        return getattr(lib, name)(*[lib.ones(s, dtype=lib.int64) for s in shapes], **factors)

    return program


def distances(left: str, right: str, rows: int, **how: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        x = lib.ones(rows, 3, dtype=getattr(lib, left))
        return lib.cdist(x, lib.zeros(2, 3, dtype=getattr(lib, right)), **how)

    return program


def determinants(matrix: Any) -> Callable[[Any], Any]:
    """With a graph of the gradient: without one PyTorch's gradient of a singular matrix is 0."""

    def program(lib: Any) -> Any:
        x = lib.tensor(matrix, dtype=lib.float64, requires_grad=True)
        found = lib.linalg.det(x)
        (grad,) = lib.autograd.grad(found.sum(), x, create_graph=True)
        return found.round(decimals=9), grad.round(decimals=9).detach() + 0.0

    return program


PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    "addmv": integers("addmv", (2,), (2, 3), (3,), beta=0.5, alpha=2.5),
    "addbmm": integers("addbmm", (2, 2), (3, 2, 3), (3, 3, 2), beta=0.5),
    "baddbmm": integers("baddbmm", (2, 2), (3, 2, 3), (3, 3, 2), alpha=1.5),
    "addmv of two dtypes": lambda L: L.addmv(L.ones(2, dtype=L.float64), L.ones(2, 3), L.ones(3)),
    "matrix_power of integers": lambda L: L.matrix_power(L.tensor([[1, 2], [3, 4]]), 3),
    **{
        f"cdist of {rows} rows of {left} and {right}, {how}": distances(left, right, rows, **how)
        for left, right in (("float32", "float64"), ("float64", "bfloat16"), ("float32", "float32"))
        for rows in (0, 2, 30)
        for how in ({}, {"p": 1.0}, {"compute_mode": "use_mm_for_euclid_dist"})
    },
    **{
        f"the gradient of the determinant of {matrix}": determinants(matrix)
        for matrix in (
            [[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 1.0]], [[0.0]], [[2.0, 1.0], [0.0, 3.0]],
            [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]], [[0.0, 0.0], [0.0, 0.0]],
            [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]],
        )
    },
    "matrix_power 0": lambda L: L.matrix_power(L.ones(2, 2).requires_grad_(), 0),
    **{
        f"matrix_norm {order} along {dim} of {shape}": (
            lambda L, order=order, dim=dim, shape=shape: [  # type: ignore[misc]
                L.linalg.matrix_norm(
                    L.arange(24.0).sub(7)[: math.prod(shape)].view(shape), order, dim, keep
                )
                for keep in (False, True)
            ]
        )
        for order in (1, -1, float("inf"), -float("inf"))
        for dim in ((0, 1), (2, 0), (-1, 1))
        for shape in ((2, 3, 4), (0, 3, 4), (2, 3, 0))
    },
    "baddbmm of bools without elements": (
        lambda L: L.baddbmm(*[L.zeros(2, 0, 0, dtype=L.bool)] * 3, beta=2, alpha=3)
    ),
    **{
        f"einsum {equation} of integers of sizes {a} and {b}": (
            lambda L, equation=equation, a=a, b=b: L.einsum(  # type: ignore[misc]
                equation, *(L.arange(24, dtype=L.int32)[: a * b].view(a, b) for a, b in (a, b))
            )
        )
        for equation in ("ij,ij->i", "ij,ij->", "ij,ij->j", "ij,jk->ik", "ij,kj->ik")
        for a, b in (((1, 3), (2, 1)), ((2, 1), (3, 3)), ((2, 3), (1, 1)), ((1, 1), (1, 1)))
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_at_edges_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    check(torch_oracle, PROGRAMS[name])


@pytest.mark.parametrize(
    "matrix", [[[1.0, 2.0], [2.0, 4.0]], [[0.0] * 3] * 3, [[1, 1j], [1j, -1]], [[0.0]]]
)
def test_derivatives_of_the_determinant_of_a_singular_matrix(matrix: Any) -> None:
    """Finite differences say what they are, for matrices of any rank."""
    x = plugrad.tensor(matrix, dtype=plugrad.complex128, requires_grad=True)
    assert gradcheck(plugrad.linalg.det, (x,), check_forward_ad=True)
    assert gradgradcheck(plugrad.linalg.det, (x,))
