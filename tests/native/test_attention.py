"""Attention beside plugrad-cpu's: layouts, masks, fully masked rows, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad

pytest.importorskip("plugrad_native.compiled")

# Leading dimensions, rows, columns, width, width of the value.
SIZES = [
    ((), 1, 1, 1, 1),
    ((2,), 3, 5, 4, 2),
    ((2, 3), 16, 16, 8, 8),
    ((2,), 70, 300, 17, 33),
    ((1,), 130, 90, 64, 48),
    ((3,), 7, 2000, 16, 16),
]
MASKS = ["none", "added", "of one row", "of booleans", "hides all"]
ALL = (True, True, True, False)


def mask_of(kind: str, draw: Any, leading: Any, rows: int, columns: int) -> Any:
    if kind == "none":
        return None
    if kind == "added":
        return draw(*leading, rows, columns)
    if kind == "of one row":
        return draw(1, columns)
    hides = draw(*leading[:1], *(1 for _ in leading[1:]), rows, columns) > 0
    if kind == "hides all":
        hides[..., : rows // 2 + 1, :] = False
    return hides


def near(found: Any, expected: Any) -> None:
    if expected is None:
        assert found is None
        return
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    tolerance = 1e-10 if found.dtype == np.float64 else 1e-4
    finite = expected[np.isfinite(expected)]
    scale = float(np.abs(finite).max(initial=1.0))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def both(
    kernels: Any, plain: Any, q: Any, k: Any, v: Any, mask: Any, causal: bool, grad: Any
) -> None:
    given = (q, k, v, mask, causal, 0.3)
    expected = plain["_scaled_dot_product_attention"](*given)
    found = kernels.attention(*given)
    near(found[0], expected[0])
    near(found[1], expected[1])
    for wanted in (ALL, (True, False, False, False), (False, False, True, False)):
        rest = (q, k, v, mask, *expected, causal, 0.3, wanted)
        slopes = plain["_scaled_dot_product_attention_backward"](grad, *rest)
        for one, other in zip(kernels.attention_backward(grad, *rest), slopes, strict=True):
            near(one, other)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_it_is_that_of_numpy(
    kernels: Any, plain: Any, draw: Any, sizes: Any, kind: str, causal: bool
) -> None:
    leading, rows, columns, width, value_width = sizes
    q, k = draw(*leading, rows, width), draw(*leading, columns, width)
    v, grad = draw(*leading, columns, value_width), draw(*leading, rows, value_width)
    both(kernels, plain, q, k, v, mask_of(kind, draw, leading, rows, columns), causal, grad)


def test_heads_may_be_any_dimension(kernels: Any, plain: Any, draw: Any) -> None:
    q, k, v, grad = (draw(2, 20, 3, 16).swapaxes(1, 2) for _ in range(4))
    both(kernels, plain, q, k, v, None, False, grad)
    both(kernels, plain, q, k, v, None, False, np.broadcast_to(np.ones((), q.dtype), grad.shape))


def test_inf_and_nan(kernels: Any, plain: Any, draw: Any) -> None:
    q, k, v = draw(2, 9, 4), draw(2, 9, 4), draw(2, 9, 4)
    q[0, 3, 2], k[1, 5, 0] = np.nan, np.inf
    v[1, 2, 1] = np.nan
    with np.errstate(all="ignore"):
        expected = plain["_scaled_dot_product_attention"](q, k, v, None, False, 0.5)
    found = kernels.attention(q, k, v, None, False, 0.5)
    near(found[0][0], expected[0][0])
    assert np.array_equal(np.isnan(found[0]), np.isnan(expected[0]))


def test_what_is_not_served_is_declined(kernels: Any, draw: Any) -> None:
    q, k, v = draw(2, 4, 3), draw(2, 5, 3), draw(2, 5, 3)
    for given in (
        (q, k[:1], v),
        (q, k, v[:, :4]),
        (q[:0], k[:0], v[:0]),
        (q, k[:, :0], v[:, :0]),
        (q[..., ::-1], k, v),
        (q, k.astype(np.float16), v),
    ):
        assert kernels.attention(*given, None, False, 1.0) is NotImplemented
    for mask in (draw(3, 4, 5), draw(5), np.ones((4, 5), np.int64), draw(1, 2, 4, 5)):
        assert kernels.attention(q, k, v, mask, False, 1.0) is NotImplemented
    out, sums = kernels.attention(q, k, v, None, False, 1.0)
    wanted = (True, True, True, True)  # the gradient of a mask
    rest = (q, k, v, draw(4, 5), out, sums, False, 1.0, wanted)
    assert kernels.attention_backward(out, *rest) is NotImplemented


@pytest.mark.usefixtures("native")
def test_threads_share_heads() -> None:
    before = plugrad.get_num_threads()
    plugrad.manual_seed(0)
    given = [plugrad.randn(6, 90, 16, requires_grad=True) for _ in range(3)]
    found = []
    try:
        for count in (1, 3):
            plugrad.set_num_threads(count)
            out = plugrad.scaled_dot_product_attention(*given, is_causal=True)
            slopes = plugrad.autograd.grad(out.square().sum(), given)
            found.append([one.detach().numpy() for one in (out, *slopes)])
    finally:
        plugrad.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
