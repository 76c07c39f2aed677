"""Products of small matrices, beside BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("plugrad_native.compiled")

# Rows, inner, columns: around the six rows and the 8 or 16 columns that are computed at once.
SIZES = [
    (1, 1, 1),
    (8, 16, 16),
    (5, 7, 3),
    (3, 2, 33),
    (17, 4, 16),
    (4, 16, 40),
    (2, 9, 8),
    (6, 5, 17),
]
RTOL = {"float32": 2e-6, "float64": 1e-14}


def close(found: Any, expected: Any) -> None:
    assert found is not NotImplemented
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    tolerance = RTOL[expected.dtype.name]
    scale = max(1.0, float(np.abs(expected).max(initial=0, where=np.isfinite(expected))))
    np.testing.assert_allclose(found, expected, tolerance, 10 * tolerance * scale)


@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_products(kernels: Any, draw: Any, rows: int, inner: int, columns: int) -> None:
    for count in ((), (3,)):
        a, b = draw(*count, rows, inner), draw(*count, inner, columns)
        turned_a, turned_b = (np.swapaxes(one, -1, -2) for one in (a, b))
        product = kernels.bmm if count else kernels.mm
        close(product(a, b), a @ b)
        close(product(np.ascontiguousarray(turned_a).swapaxes(-1, -2), b), a @ b)
        close(product(a, np.ascontiguousarray(turned_b).swapaxes(-1, -2)), a @ b)
        close(kernels.matmul_nh(a, np.ascontiguousarray(turned_b)), a @ b)
        close(kernels.matmul_hn(np.ascontiguousarray(turned_a), b), a @ b)
        wide = draw(*count, inner, 2 * columns)
        close(product(a, wide[..., ::2]), a @ wide[..., ::2])
        close(product(a, np.broadcast_to(b[..., :1, :1], b.shape)), a @ (b * 0 + b[..., :1, :1]))
        close(product(a, b[..., ::-1, :]), a @ b[..., ::-1, :])


@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_sums_with_products(
    kernels: Any, plain: Any, draw: Any, rows: int, inner: int, columns: int
) -> None:
    a, b = draw(rows, inner), draw(inner, columns)
    shapes = ((columns,), (1,), (1, columns), (rows, 1), (1, 1), (rows, columns))
    for c in (draw(*shape) for shape in shapes):
        for beta, alpha in ((1, 1), (0.5, -2), (0, 3.0)):
            close(kernels.addmm(c, a, b, beta, alpha), plain["addmm"](c, a, b, beta, alpha))
    spoilt = np.full((rows, columns), np.nan, a.dtype)
    close(kernels.addmm(spoilt, a, b, 0, 1), a @ b)


@pytest.mark.parametrize("columns", [5, 2000])  # small, and by BLAS
@pytest.mark.parametrize("shape", [(16,), (8, 16), (2, 4, 16), (2, 1, 4, 16)])
def test_linear(kernels: Any, plain: Any, draw: Any, shape: Any, columns: int) -> None:
    x, weight, bias = draw(*shape), draw(columns, 16), draw(columns)
    close(kernels.linear(x, weight, bias), plain["linear"](x, weight, bias))
    close(kernels.linear(x, weight, None), plain["linear"](x, weight, None))
    if len(shape) == 1:
        return
    grad = draw(*shape[:-1], columns)
    for mask in ((True, True, True), (False, True, False), (True, False, True)):
        found = kernels.linear_backward(x, grad, weight, mask)
        expected = plain["linear_backward"](x, grad, weight, mask)
        for mine, other in zip(found, expected, strict=True):
            if other is None:
                assert mine is None
            else:
                close(mine, other)


def test_linear_of_turned_matrices(kernels: Any, plain: Any, draw: Any) -> None:
    x, weight, bias = draw(40, 50).T, draw(40, 60).T, draw(60)
    close(kernels.linear(x, weight, bias), plain["linear"](x, weight, bias))
    contiguous = np.ascontiguousarray(x)
    grad = draw(50, 60)
    found = kernels.linear_backward(contiguous, grad, weight, (True, True, True))
    expected = plain["linear_backward"](contiguous, grad, weight, (True, True, True))
    for mine, other in zip(found, expected, strict=True):
        close(mine, other)


def test_what_is_large_or_does_not_fit_is_declined(kernels: Any, draw: Any) -> None:
    a, b = draw(40, 40), draw(40, 40)
    assert kernels.mm(a, b) is NotImplemented
    assert kernels.linear(draw(2, 40, 80)[..., ::2], b, None) is NotImplemented
    assert kernels.mm(draw(1, 5000), draw(5000, 1)) is NotImplemented
    assert kernels.mm(draw(3, 4), draw(3, 4)) is NotImplemented
    assert kernels.mm(draw(3, 0), draw(0, 4)) is NotImplemented
    assert kernels.bmm(draw(2, 3, 4), draw(3, 4, 3)) is NotImplemented
    assert kernels.addmm(draw(5), draw(3, 4), draw(4, 3), 1, 1) is NotImplemented
    assert kernels.linear(draw(3, 4), draw(5, 4), draw(1)) is NotImplemented
    for x, grad, weight in (
        (draw(3, 4), draw(2, 5), draw(5, 4)),
        (draw(3, 4), draw(3, 6), draw(5, 4)),
        (draw(3, 4), draw(3, 5), draw(5, 3)),
    ):
        assert kernels.linear_backward(x, grad, weight, (True,) * 3) is NotImplemented


def test_inf_and_nan_go_where_they_go_in_blas(kernels: Any, draw: Any) -> None:
    a, b = draw(3, 5), draw(5, 4)
    a[1, 2] = np.nan
    b[0, 3] = np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isfinite(kernels.mm(a, b)), np.isfinite(a @ b))
