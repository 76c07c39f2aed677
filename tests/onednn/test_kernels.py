"""Each kernel beside plugrad-cpu's own: on large and small arrays, on inf and nan, on odd layouts.

The oracle is the plain kernel, which is tested beside PyTorch and closed forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrad_cpu.backend import CpuBackend

variants = pytest.importorskip("plugrad_onednn.variants")
primitives = pytest.importorskip("plugrad_onednn.primitives")

PLAIN = CpuBackend().kernels()
KERNELS = {one.operator: one.kernel for one in variants.VARIANTS}
FLOAT32 = np.dtype(np.float32)
MASK = (True, True, True)

# Where functions bend, saturate, overflow and underflow.
EDGES = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 3e-39, 88, -88, -104, 20, -20, 5],
    np.float32,
)


def check(name: str, *args: Any, rtol: float = 2e-5, atol: float = 1e-5) -> None:
    found, expected = KERNELS[name](*args), PLAIN[name](*args)
    assert found is not NotImplemented
    if not isinstance(found, tuple):
        found, expected = (found,), (expected,)
    assert len(found) == len(expected)
    for mine, plain in zip(found, expected, strict=True):
        if plain is None or mine is None:
            assert mine is plain
            continue
        assert (mine.dtype, mine.shape) == (plain.dtype, plain.shape)
        np.testing.assert_allclose(mine, plain, rtol, atol)


SIZES = [1, 7, 1000, 1 << 17]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("edges", [False, True], ids=["finite", "edges"])
@pytest.mark.parametrize(
    ("name", "rest", "takes_gradient"),
    [
        ("gelu", ("none",), False),
        ("gelu", ("tanh",), False),
        ("gelu_backward", ("none",), True),
        ("gelu_backward", ("tanh",), True),
        ("silu", (), False),
        ("silu_backward", (), True),
        ("sigmoid", (), False),
    ],
)
def test_activations(
    draw: Any,
    threads: int,
    name: str,
    rest: tuple[str, ...],
    takes_gradient: bool,
    edges: bool,
    size: int,
) -> None:
    x = np.resize(EDGES, size) if edges else 3 * draw(size)
    check(name, *([draw(size)] if takes_gradient else []), x, *rest)


def skip_if_left(name: str, *args: Any) -> None:
    """Skip what oneDNN has but a reference implementation of for this processor: that is left to
    the plain kernel, which is faster."""
    if KERNELS[name](*args) is NotImplemented:
        pytest.skip("oneDNN has but its reference implementation for this processor")


def test_reference_implementations_are_not_used(monkeypatch: pytest.MonkeyPatch, draw: Any) -> None:
    x = draw(41, 67)
    assert KERNELS["_softmax"](x, 1, False) is not NotImplemented
    monkeypatch.setattr(primitives, "implementation_of", lambda descriptor: "ref:any")
    x = draw(43, 67)  # of another shape, for which there is no plan
    assert KERNELS["_softmax"](x, 1, False) is NotImplemented


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((3,), 0), ((40, 65), 1), ((40, 65), 0), ((40, 65), -1), ((4, 6, 5, 7), 2), ((700, 130), 1)],
)
def test_softmax(draw: Any, threads: int, name: str, shape: tuple[int, ...], dim: int) -> None:
    x = 3 * draw(*shape)
    skip_if_left(name, x, dim, False)
    check(name, x, dim, False)


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize(("shape", "dim"), [((3,), 0), ((40, 65), -1), ((700, 130), 1)])
def test_gradient_of_softmax(
    draw: Any, threads: int, name: str, shape: tuple[int, ...], dim: int
) -> None:
    out = PLAIN[name](3 * draw(*shape), dim, False)
    skip_if_left(f"{name}_backward_data", draw(*shape), out, dim, FLOAT32)
    check(f"{name}_backward_data", draw(*shape), out, dim, FLOAT32)
    grad = draw(*shape)
    grad.reshape(-1)[1] = np.nan
    check(f"{name}_backward_data", grad, out, dim, FLOAT32)


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_rows_that_are_masked(draw: Any, name: str) -> None:
    x = draw(6, 64)
    x[0], x[1, 3], x[2, 5:], x[3], x[4] = -np.inf, -np.inf, -np.inf, 1e30, -1e30
    check(name, x, 1, False)


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_rows_of_which_onednn_would_lose_a_nan_are_left_to_the_plain_kernel(
    draw: Any, name: str, value: float
) -> None:
    x = draw(6, 64)
    x[2, 3] = value
    assert KERNELS[name](x, 1, False) is NotImplemented


@pytest.mark.parametrize(("shape", "normalized"), [((7, 65), 1), ((4, 6, 10), 2), ((900, 96), 1)])
@pytest.mark.parametrize("with_weight", [True, False])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("edges", [False, True], ids=["finite", "edges"])
def test_layer_norm_and_its_gradients(
    draw: Any,
    threads: int,
    shape: tuple[int, ...],
    normalized: int,
    with_weight: bool,
    with_bias: bool,
    edges: bool,
) -> None:
    x, inner = draw(*shape), shape[-normalized:]
    if edges:
        x[0, 0], x[1], x[2, 1] = np.inf, 3.0, np.nan
    weight = draw(*inner) if with_weight else None
    bias = draw(*inner) if with_bias else None
    check("native_layer_norm", x, inner, weight, bias, 1e-5)
    with np.errstate(all="ignore"):
        _, mean, rstd = PLAIN["native_layer_norm"](x, inner, weight, bias, 1e-5)
    mask = (True, with_weight, with_bias)
    stats = (mean, rstd, weight, bias, mask)
    check("native_layer_norm_backward", draw(*shape), x, inner, *stats, rtol=1e-3, atol=1e-3)


def test_layer_norm_gives_the_gradients_that_are_asked_for(draw: Any) -> None:
    x, weight, bias = draw(7, 65), draw(65), draw(65)
    _, mean, rstd = PLAIN["native_layer_norm"](x, (65,), weight, bias, 1e-5)
    mask = (False, True, False)
    check("native_layer_norm_backward", draw(7, 65), x, (65,), mean, rstd, weight, bias, mask)


# Batch, channels, sizes; channels out, taps, stride, padding, dilation, groups.
PLANES: list[tuple[Any, ...]] = [
    ((4, 8, 20), (12,), (3,), (1,), (1,), (1,), 1),
    ((2, 16, 14, 14), (16,), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 16, 15, 11), (32,), (3, 5), (2, 1), (0, 2), (1, 1), 1),
    ((2, 16, 15, 17), (16,), (3, 3), (1, 1), (2, 2), (2, 2), 2),
    ((2, 16, 15, 17), (16,), (3, 3), (2, 2), (1, 1), (1, 1), 16),
    ((2, 24, 9, 9), (40,), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((9, 5, 9, 9), (7,), (2, 2), (3, 3), (0, 0), (1, 1), 1),
    ((1, 8, 6, 7, 8), (8,), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((9, 32, 28, 28), (32,), (3, 3), (1, 1), (1, 1), (1, 1), 1),
]


@pytest.mark.parametrize("case", PLANES, ids=str)
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_convolution_and_its_gradients(
    draw: Any, threads: int, case: tuple[Any, ...], transposed: bool, with_bias: bool
) -> None:
    shape, (out,), taps, stride, padding, dilation, groups = case
    x = draw(*shape)
    filters = (shape[1], out // groups) if transposed else (out, shape[1] // groups)
    weight = draw(*filters, *taps)
    bias = draw(out) if with_bias else None
    zero = tuple(min(s, 2) - 1 for s in stride)
    windows = (stride, padding, dilation, transposed)
    # Thousands of products are summed up in another order.
    near = {"rtol": 1e-4, "atol": 5e-4}
    check("convolution", x, weight, bias, *windows, zero, groups, **near)
    grad = draw(*PLAIN["convolution"](x, weight, bias, *windows, zero, groups).shape)
    check("convolution_backward", grad, x, weight, *windows, groups, MASK, rtol=1e-3, atol=5e-3)


LAYOUTS: dict[str, Any] = {
    "channels last": lambda x: np.ascontiguousarray(np.moveaxis(x, 1, -1)).transpose(0, 3, 1, 2),
    "every second": lambda x: np.repeat(x, 2, 3)[..., ::2],
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3),
    "with a gap": lambda x: np.concatenate([x, x], 1)[:, : x.shape[1]],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_convolution_reads_other_layouts(draw: Any, layout: str) -> None:
    x, weight, grad = draw(3, 16, 12, 12), draw(24, 16, 3, 3), draw(3, 24, 12, 12)
    lay = LAYOUTS[layout]
    assert not lay(x).flags.c_contiguous
    windows = ((1, 1), (1, 1), (1, 1), False)
    near = {"rtol": 1e-4, "atol": 5e-4}
    check("convolution", lay(x), lay(weight), None, *windows, (0, 0), 1, **near)
    given = (lay(grad), lay(x), lay(weight))
    check("convolution_backward", *given, *windows, 1, MASK, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_convolution_hands_inf_and_nan_on(draw: Any, value: float) -> None:
    x, weight = draw(2, 16, 12, 12), draw(24, 16, 3, 3)
    x[0, 3, 5, 5] = value
    windows = ((1, 1), (1, 1), (1, 1), False)
    near = {"rtol": 1e-4, "atol": 5e-4}
    check("convolution", x, weight, None, *windows, (0, 0), 1, **near)


def _backwards(x: Any) -> Any:
    return x[:, :, ::-1]


def _expanded(x: Any) -> Any:
    return np.broadcast_to(x[:1], x.shape)


@pytest.mark.parametrize("lay", [_backwards, _expanded])
def test_layouts_that_onednn_cannot_read_are_left_to_the_plain_kernel(draw: Any, lay: Any) -> None:
    x, weight = draw(2, 16, 12, 12), draw(24, 16, 3, 3)
    windows = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    assert KERNELS["convolution"](lay(x), weight, None, *windows) is NotImplemented


def test_other_dtypes_beside_the_first_are_left_to_the_plain_kernel(draw: Any) -> None:
    x, weight = draw(2, 16, 12, 12), draw(24, 16, 3, 3).astype(np.float64)
    windows = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    assert KERNELS["convolution"](x, weight, None, *windows) is NotImplemented
    rows = draw(8, 64)
    wide = np.ones(64)
    assert KERNELS["native_layer_norm"](rows, (64,), wide, None, 1e-5) is NotImplemented
    assert KERNELS["silu_backward"](rows.astype(np.float64), rows) is NotImplemented
    assert KERNELS["_softmax_backward_data"](rows, rows, 1, np.dtype(np.float16)) is NotImplemented


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0)])
def test_empty_arrays_are_left_to_the_plain_kernel(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    assert KERNELS["_softmax"](x, 0, False) is NotImplemented
    assert KERNELS["_softmax_backward_data"](x, x, 0, FLOAT32) is NotImplemented
    assert KERNELS["native_layer_norm"](x, shape[-1:], None, None, 1e-5) is NotImplemented
