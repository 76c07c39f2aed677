"""`lobpcg`. Oracle: `linalg.eigh`, PyTorch's gradients, finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.autograd import gradcheck, gradgradcheck


def _matrix(*batch: int, dtype: str = "float64") -> Any:
    plugrad.manual_seed(1)
    a = plugrad.randn(*batch, 12, 12, dtype=getattr(plugrad, dtype))
    return a @ a.mH


def _weight() -> Any:
    plugrad.manual_seed(2)
    b = plugrad.randn(12, 12, dtype=plugrad.float64)
    return b @ b.mT + 12 * plugrad.eye(12, dtype=plugrad.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("largest", [True, False])
def test_pairs_are_those_of_eigh(dtype: str, largest: bool) -> None:
    A = _matrix(2, dtype=dtype)
    values, vectors = plugrad.lobpcg(A, k=2, n=4, largest=largest)
    assert values.shape == (2, 2)
    assert vectors.shape == (2, 12, 2)
    every = plugrad.linalg.eigvalsh(A)
    wanted = every.flip(-1)[:, :2] if largest else every[:, :2]
    tolerance = 1e-3 if dtype == "float32" else 1e-8
    plugrad.testing.assert_close(values, wanted, rtol=tolerance, atol=tolerance)
    residual = A @ vectors - vectors * values[:, None]
    assert float(residual.abs().max()) < 1e3 * tolerance


@pytest.mark.parametrize("method", ["basic", "ortho", None])
def test_a_second_matrix_weighs(method: str | None) -> None:
    A, B = _matrix(), _weight()
    values, X = plugrad.lobpcg(A, 3, B, method=method, tol=1e-10)
    plugrad.testing.assert_close(A @ X, B @ X * values, rtol=1e-6, atol=1e-6)
    plugrad.testing.assert_close(X.mT @ B @ X, plugrad.eye(3, dtype=plugrad.float64))
    wanted = np.sort(np.linalg.eigvals(np.linalg.solve(B.numpy(), A.numpy())).real)[::-1][:3]
    np.testing.assert_allclose(values.numpy(), wanted)


def test_a_preconditioner_saves_steps() -> None:
    A = plugrad.diag(plugrad.arange(1.0, 101.0, dtype=plugrad.float64) ** 2)
    plugrad.manual_seed(0)
    start = plugrad.randn(100, 3, dtype=plugrad.float64)
    taken = []
    for iK in (None, plugrad.linalg.inv(A)):
        steps: list[Any] = []
        plugrad.lobpcg(A, X=start, iK=iK, largest=False, tracker=steps.append)
        taken.append(len(steps))
    assert taken[1] < taken[0] / 2


def test_a_tracker_sees_each_step_and_may_stop() -> None:
    seen: list[tuple[int, int]] = []

    def tracker(worker: Any) -> None:
        seen.append((worker.ivars["istep"], worker.ivars["iterations_left"]))
        assert worker.X.shape == (12, 2)
        assert worker.tvars["rerr"].shape == (2,)
        worker.bvars["force_stop"] = worker.ivars["istep"] == 2

    plugrad.lobpcg(_matrix(), k=2, niter=9, tracker=tracker)
    assert seen == [(0, 9), (1, 8), (2, 7), (2, 7)]


def _pairs(A: Any, B: Any = None) -> Any:
    """The eigenvalues, and what does not depend on the signs of their vectors."""
    A = (A + A.mT) / 2
    start = plugrad.eye(12, 2, dtype=plugrad.float64) + 0.1
    values, vectors = plugrad.lobpcg(A, X=start, B=B, tol=1e-13)
    return values, vectors[:, None] * vectors[None]


@pytest.mark.parametrize("weighed", [False, True])
def test_gradients(weighed: bool) -> None:
    A = _matrix().requires_grad_()
    inputs = (A, _weight().requires_grad_()) if weighed else (A,)
    assert gradcheck(_pairs, inputs, fast_mode=True)
    assert gradgradcheck(_pairs, inputs, fast_mode=True, atol=1e-4)


def test_gradients_are_those_of_pytorch(torch_oracle: Any) -> None:
    A = _matrix()
    found = []
    for library in (plugrad, torch_oracle):
        matrix = library.tensor(A.tolist(), dtype=library.float64, requires_grad=True)
        start = library.eye(12, 2, dtype=library.float64) + 0.1
        values, vectors = library.lobpcg(matrix, X=start, tol=1e-13)
        (values.sum() + (vectors**4).sum()).backward()
        found.append(matrix.grad.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-8)


def test_refusals() -> None:
    A = _matrix()
    with pytest.raises(ValueError, match=r"number of A rows \(=12\) is smaller than 3 x"):
        plugrad.lobpcg(A, k=5)
    with pytest.raises(ValueError, match="'basic' or 'ortho', got 'qr'"):
        plugrad.lobpcg(A, method="qr")
    with pytest.raises(ValueError, match="at least k = 3 columns of X, got n = 2"):
        plugrad.lobpcg(A, k=3, n=2)
    with pytest.raises(RuntimeError, match=r"B of shape \[12, 12\], got \[3, 3\]"):
        plugrad.lobpcg(A, B=plugrad.eye(3, dtype=plugrad.float64))
    with pytest.raises(RuntimeError, match=r"A to be \(\*, m, m\), got shape \[2, 3\]"):
        plugrad.lobpcg(plugrad.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"got plugrad\.int64"):
        plugrad.lobpcg(plugrad.eye(9, dtype=plugrad.int64))
    with pytest.raises(ValueError, match="does not support complex input"):
        plugrad.lobpcg(_matrix(dtype="complex128").requires_grad_())
