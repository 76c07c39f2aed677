"""The extensions of the standard: decompositions and Fourier transforms. Oracle:
array-api-strict, and products of the factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrad import array_api as xp
from tests.core.array_api.against_strict import COMPLEX, REAL, compare

FLOATING = REAL + COMPLEX


def matrices(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(4)
    values = rng.normal(size=shape)
    if dtype in COMPLEX:
        return (values + 1j * rng.normal(size=shape)).astype(dtype)
    return values.astype(dtype)


def hermitian(dtype: str) -> Any:
    made = matrices(dtype, 2, 3, 3)
    return (made @ np.conj(np.swapaxes(made, -1, -2)) + np.eye(3)).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATING)
def test_results_that_are_unique(dtype: str) -> None:
    a, h = matrices(dtype, 2, 3, 2), hermitian(dtype)
    compare(lambda lib, x: lib.linalg.svdvals(x), a)
    compare(lambda lib, x: lib.linalg.eigvalsh(x), h)
    compare(lambda lib, x: lib.linalg.cholesky(x), h)
    compare(lambda lib, x: lib.linalg.cholesky(x, upper=True), h)
    compare(lambda lib, x: tuple(lib.linalg.slogdet(x)), h)
    compare(lambda lib, x: tuple(part.shape for part in lib.linalg.svd(x)), a)
    compare(lambda lib, x: tuple(p.shape for p in lib.linalg.svd(x, full_matrices=False)), a)
    compare(lambda lib, x: tuple(p.dtype for p in lib.linalg.eig(x)), h)


@pytest.mark.parametrize("dtype", FLOATING)
def test_factors_multiply_to_the_matrix(dtype: str) -> None:
    a, h = xp.asarray(matrices(dtype, 2, 3, 2)), xp.asarray(hermitian(dtype))
    u, s, vh = xp.linalg.svd(a, full_matrices=False)
    values, vectors = xp.linalg.eigh(h)
    q, r = xp.linalg.qr(a, mode="complete")
    for product, whole in (
        (xp.matmul(u * xp.astype(s, u.dtype)[:, None, :], vh), a),
        (xp.matmul(h, vectors), vectors * xp.astype(values, h.dtype)[:, None, :]),
        (xp.matmul(q, r), a),
    ):
        np.testing.assert_allclose(product.numpy(), whole.numpy(), 1e-4, 1e-4)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_an_axis(name: str) -> None:
    kinds = REAL if name in ("rfft", "ihfft") else COMPLEX
    for dtype in kinds:
        for options in ({}, {"n": 5, "axis": 0}, {"norm": "ortho"}):
            a = matrices(dtype, 4, 3)
            compare(lambda lib, x, o=options: getattr(lib.fft, name)(x, **o), a)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_several_axes(name: str) -> None:
    a = matrices("float64" if name == "rfftn" else "complex128", 4, 3)
    for options in ({}, {"s": (2, 5), "axes": (0, 1)}, {"axes": (1,), "norm": "forward"}):
        compare(lambda lib, x, o=options: getattr(lib.fft, name)(x, **o), a)


def test_frequencies() -> None:
    for name in ("fftfreq", "rfftfreq"):
        compare(lambda lib, name=name: getattr(lib.fft, name)(5, d=0.1, dtype=lib.float64))
    for name in ("fftshift", "ifftshift"):
        a = matrices("float32", 4, 3)
        compare(lambda lib, x, name=name: getattr(lib.fft, name)(x), a)
        compare(lambda lib, x, name=name: getattr(lib.fft, name)(x, axes=(1,)), a)


def test_no_result_is_lazily_conjugated() -> None:
    found = xp.linalg.svd(xp.asarray(matrices("complex128", 2, 3)))
    for part in (*found, xp.fft.ihfft(xp.ones(4)), xp.conj(found[0])):
        assert not part.is_conj()
        assert not part.is_neg()
