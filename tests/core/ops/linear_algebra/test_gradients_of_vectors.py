"""Gradients of eigenvectors, singular vectors and Cholesky factors, of what is unique about them.

Oracles: finite differences, PyTorch's rules, closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck

DTYPES = (plugrad.float64, plugrad.complex128)
SHAPES = ((3, 3), (3, 2), (2, 3))


def random(shape: tuple[int, ...], dtype: Any) -> Any:
    rng = np.random.default_rng(3)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return plugrad.tensor(values if dtype.is_complex else values.real, requires_grad=True)


def hermitian(x: Any) -> Any:
    return x + x.mH


def check(function: Callable[..., Any], x: Any) -> None:
    """Both modes, and second derivatives."""
    assert gradcheck(function, (x,), check_forward_ad=True)
    assert gradgradcheck(function, (x,), fast_mode=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape: tuple[int, ...], dtype: Any, full: bool) -> None:
    k = min(shape)

    def projectors(x: Any) -> Any:
        """Of each pair of singular vectors: a phase of both cancels."""
        U, S, Vh = plugrad.linalg.svd(x, full_matrices=full)
        pairs = U[:, :k].mT.unsqueeze(-1) * Vh[:k].unsqueeze(-2)
        return pairs, S

    check(projectors, random(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigh(dtype: Any, triangle: str) -> None:
    def projectors(x: Any) -> Any:
        values, V = plugrad.linalg.eigh(hermitian(x), triangle)
        return V.mT.unsqueeze(-1) * V.mH.unsqueeze(-2), values

    check(projectors, random((3, 3), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype: Any) -> None:
    def projectors(x: Any) -> Any:
        values, V = plugrad.linalg.eig(x)
        return V.mT.unsqueeze(-1) * V.mH.unsqueeze(-2), values

    check(projectors, random((3, 3), dtype))
    check(plugrad.linalg.eigvals, random((3, 3), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype: Any, upper: bool) -> None:
    def factor(x: Any) -> Any:
        return plugrad.linalg.cholesky(x @ x.mH + plugrad.eye(3, dtype=dtype), upper=upper)

    def solution(x: Any) -> Any:
        triangle = x.triu() if upper else x.tril()
        inverse = plugrad.cholesky_inverse(triangle, upper)
        return inverse, plugrad.cholesky_solve(x[:, :1], triangle, upper)

    check(factor, random((3, 3), dtype))
    check(solution, random((3, 3), dtype) + 2 * plugrad.eye(3, dtype=dtype))


@pytest.mark.parametrize("hermitian_factor", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ldl_solve_toward_the_right_side(dtype: Any, hermitian_factor: bool) -> None:
    x = random((3, 3), dtype).detach()
    matrix = x + (x.mH if hermitian_factor else x.mT)
    LD, pivots = plugrad.linalg.ldl_factor(matrix, hermitian=hermitian_factor)
    check(
        lambda B: plugrad.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian_factor),
        random((3, 2), dtype),
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [("svd", "singular vectors"), ("eigh", "eigenvectors"), ("eig", "eigenvectors")],
)
def test_losses_that_depend_on_a_phase_are_refused(name: str, what: str) -> None:
    results = getattr(plugrad.linalg, name)(random((3, 3), plugrad.complex128))
    vectors = results[0] if name == "svd" else results[1]
    with pytest.raises(RuntimeError, match=rf"The {what} in the complex case are specified up to"):
        vectors.imag.sum().backward()


def test_vectors_beyond_the_first_have_no_gradient() -> None:
    x = random((3, 2), plugrad.float64)
    plugrad.linalg.svd(x).U[:, 2].sum().backward()
    assert x.grad is not None
    assert not x.grad.any()


def test_qr_without_a_gradient() -> None:
    x = random((3, 2), plugrad.float64)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows"):
        plugrad.linalg.qr(x, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        plugrad.linalg.qr(x, "r").R.sum().backward()


def test_lapacks_forms_have_no_gradient() -> None:
    x = random((2, 2), plugrad.float64)
    with pytest.raises(NotImplementedError, match="derivative for 'geqrf' is not implemented"):
        plugrad.geqrf(x).a.sum().backward()
    with pytest.raises(NotImplementedError, match="linalg_ldl_factor_ex"):
        plugrad.linalg.ldl_factor(x)[0].sum().backward()


def test_values_alone_do_not_make_vectors_without_a_gradient() -> None:
    """The gradient needs vectors; without one they are not computed."""
    x = random((2, 2), plugrad.float64)
    assert plugrad.linalg.svdvals(x).grad_fn is not None
    assert plugrad.ops.plugrad._linalg_svd(x.detach(), compute_uv=False)[0].shape == (0,)


def test_the_gradient_of_a_singular_logarithm_is_infinite() -> None:
    x = plugrad.ones(2, 2, requires_grad=True)
    sign, log = plugrad.linalg.slogdet(x)
    assert (sign.item(), log.item()) == (0.0, -float("inf"))
    log.backward()
    assert x.grad is not None
    assert x.grad.isinf().all()
