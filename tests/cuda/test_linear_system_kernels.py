"""Kernels of linear systems and eigenvalues, with NumPy as their namespace: the CPU's results."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import cupyx
import numpy as np
import pytest

from plugrad.plugins import package_kernels
from plugrad_cuda.kernels import array_kernels
from tests.cuda.host_namespace import HostNamespace

CPU = package_kernels("plugrad_cpu.kernels")
OURS = array_kernels(HostNamespace())


def random(*shape: int, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(shape)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return (values if dtype.startswith("c") else values.real).astype(dtype)


def same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 4, 3), (70, 70)])
def test_lu_of_cusolver(shape: tuple[int, ...]) -> None:
    a = random(*shape)
    a[..., 1] = 0  # LAPACK's `info` is 2
    same(OURS["_linalg_lu_factor"](a, True), CPU["_linalg_lu_factor"](a, True))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("batch", [(), (2, 1)])
def test_solving_by_factors(batch: tuple[int, ...], adjoint: bool, left: bool, dtype: str) -> None:
    a = random(*batch, 5, 5, dtype=dtype)
    b = random(3, *((5, 2) if left else (2, 5)), dtype=dtype)
    factors, pivots, _ = CPU["_linalg_lu_factor"](a, True)
    found = OURS["linalg_lu_solve"](factors, pivots, b, left, adjoint)
    matrix = a.conj().swapaxes(-1, -2) if adjoint else a
    product = matrix @ found if left else found @ matrix
    np.testing.assert_allclose(product, np.broadcast_to(b, product.shape), atol=1e-11)


@pytest.mark.parametrize(("pivot", "said"), [(0, "greater"), (4, "smaller")])
def test_a_pivot_that_is_no_row(pivot: int, said: str) -> None:
    pivots = np.array([1, 2, pivot], np.int32)
    for table in (OURS, CPU):
        with pytest.raises(RuntimeError, match=f"must all be {said} or equal"):
            table["linalg_lu_solve"](np.eye(3), pivots, np.ones((3, 1)), True, False)
    assert OURS["_lu_permutation"](pivots, 3) is NotImplemented


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(unit: bool, left: bool, upper: bool) -> None:
    a, b = random(4, 1, 3, 3), random(2, 3, 3)
    found = OURS["linalg_solve_triangular"](a, b, upper, left, unit)
    same([found], [CPU["linalg_solve_triangular"](a, b, upper, left, unit)])


class Watched(HostNamespace):
    def checked(self, function: Any, *args: Any) -> Any:
        """As CuPy: what it solves has one shape, the right sides too."""
        assert len({arg.shape[:-1] for arg in args}) == 1
        return super().checked(function, *args)


def test_batches_of_systems_are_broadcast_before_cupy_sees_them() -> None:
    a, b = random(2, 1, 3, 3), np.eye(3)
    same([array_kernels(Watched())["_linalg_solve"](a, b)], [CPU["_linalg_solve"](a, b)])


def test_what_is_singular_is_left_to_the_host() -> None:
    assert OURS["_linalg_solve"](np.zeros((2, 2)), np.ones((2, 1))) is NotImplemented
    assert OURS["linalg_inv"](np.zeros((2, 2))) is NotImplemented
    assert OURS["_check_matrices"](np.array([0, 2]), "linalg.inv") is NotImplemented
    assert OURS["linalg_eig"](np.full((2, 2), np.nan)) is NotImplemented


def test_an_older_cusolver_has_no_eigenvalues() -> None:
    ns = HostNamespace()
    ns.has_eig = lambda: False  # type: ignore[method-assign]  # stands for CUDA before 12.6
    assert array_kernels(ns)["_linalg_eigvals"](np.eye(2)) is NotImplemented


def parameters(module: str, function: str) -> list[str]:
    """Of a function of cupyx.scipy.linalg, which cannot be imported without cuBLAS."""
    path = Path(cupyx.__path__[0]) / "scipy" / "linalg" / f"{module}.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return [argument.arg for argument in node.args.args]
    raise AssertionError(f"{path} has no {function}")


def test_arguments_of_cupys_functions() -> None:
    """Those that `CupyNamespace` gives them, in this order."""
    assert parameters("_decomp_lu", "lu_factor")[::2] == ["a", "check_finite"]
    assert parameters("_solve_triangular", "solve_triangular")[:5] == [
        *("a", "b", "trans", "lower", "unit_diagonal")
    ]


def test_the_sign_of_a_determinant_that_is_no_number() -> None:
    a = random(2, 3, 3)
    a[0, 0, 0] = np.nan
    with np.errstate(all="ignore"):
        found, expected = OURS["linalg_slogdet"](a), CPU["linalg_slogdet"](a)
    same(found, expected)
    assert found[0][0] == 0
