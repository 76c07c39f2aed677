"""Each kernel beside plugrad-cpu's own: on sizes around the blocks of its loops, on inf and nan.

The oracle is the plain kernel, which is tested beside PyTorch and closed forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("plugrad_native.compiled")

# What the operators are called in the compiled modules.
FUNCTIONS = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_softmax_backward_data": "softmax_backward",
    "_log_softmax_backward_data": "log_softmax_backward",
    "native_layer_norm": "layer_norm",
    "native_layer_norm_backward": "layer_norm_backward",
    "_fused_rms_norm": "rms_norm",
    "_fused_rms_norm_backward": "rms_norm_backward",
    "native_group_norm": "group_norm",
    "native_group_norm_backward": "group_norm_backward",
    "max.dim": "max_dim",
    "nll_loss_forward": "nll_loss",
    "scatter.src": "scatter",
}
# Where functions bend, saturate, overflow and underflow.
EDGES = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 3e-39, 88, -88, -104, 20, -5]
# Around the lengths of vectors, lanes and blocks.
SIZES = [1, 7, 8, 33, 255, 512, 513, 1600, 40000]
RTOL = {"float32": 3e-6, "float64": 1e-13}


@pytest.fixture
def check(kernels: Any, plain: Any) -> Any:
    """Compares a kernel with the plain one of the operator."""

    def checked(name: str, *args: Any, rtol: float = 1.0, atol: float = 1.0) -> None:
        found = getattr(kernels, FUNCTIONS.get(name, name))(*args)
        expected = plain[name](*args)
        assert found is not NotImplemented
        if not isinstance(found, tuple):
            found, expected = (found,), (expected,)
        assert len(found) == len(expected)
        for mine, other in zip(found, expected, strict=True):
            if other is None or mine is None:
                assert mine is other
                continue
            assert type(mine) is np.ndarray
            assert (mine.dtype, mine.shape) == (other.dtype, np.shape(other))
            least = RTOL.get(mine.dtype.name, 0.0)
            np.testing.assert_allclose(mine, other, rtol * least, atol * least)

    return checked


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
        ("relu", (), False),
        ("tanh_backward", (), True),
        ("sigmoid_backward", (), True),
        ("exp", (), False),
        ("log", (), False),
        ("clamp", (-1, 0.5), False),
        ("clamp", (None, 0.1), False),
        ("clamp", (float("-inf"), None), False),
        ("clamp", (2.0, 1.0), False),
        ("sigmoid", (), False),
        ("tanh", (), False),
        ("erf", (), False),
        ("threshold_backward", (0,), True),
        ("threshold_backward", (0.5,), True),
    ],
)
def test_activations(
    check: Any,
    draw: Any,
    name: str,
    rest: tuple[Any, ...],
    takes_gradient: bool,
    edges: bool,
    size: int,
) -> None:
    if name == "erf":
        pytest.importorskip("scipy")
    x = 3 * draw(size)
    if edges:
        x = np.resize(np.array(EDGES).astype(x.dtype), size)
    check(name, *([draw(size)] if takes_gradient else []), x, *rest, rtol=3, atol=3)


@pytest.mark.parametrize("shape", [(1,), (40,), (7, 513), (3, 4, 5)])
def test_cumsum(check: Any, draw: Any, shape: tuple[int, ...]) -> None:
    x = draw(*shape)
    check("cumsum", x, -1, x.dtype)
    check("cumsum", np.full(shape, -0.0), len(shape) - 1, np.dtype(np.float64))


ANY_DTYPE = ["bool", "int16", "float32", "int64", "complex64", "complex128", "float16"]


@pytest.mark.parametrize("dtype", ANY_DTYPE)
@pytest.mark.parametrize(
    ("shape", "dim"), [((5,), 0), ((5, 3), 0), ((3, 5), 1), ((3, 5, 2), -2), ((5, 0), 0)]
)
@pytest.mark.parametrize("index", [[], [4, 0, 0, 2], 3])
def test_index_select(check: Any, dtype: str, shape: tuple[int, ...], dim: int, index: Any) -> None:
    table = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    check("index_select", table, dim, np.array(index, np.int64))


@pytest.mark.parametrize("dtype", ANY_DTYPE)
@pytest.mark.parametrize("width", [0, 1, 7])
@pytest.mark.parametrize("shape", [(), (0,), (6,), (2, 3)])
def test_embedding(check: Any, dtype: str, width: int, shape: tuple[int, ...]) -> None:
    table = np.arange(11 * width).reshape(11, width).astype(dtype)
    rows = np.arange(np.prod(shape), dtype=np.int64) % 11
    check("embedding", table, rows.reshape(shape))


@pytest.mark.parametrize("dtype", ANY_DTYPE)
@pytest.mark.parametrize("count", [0, 1, 4, 9])
@pytest.mark.parametrize(
    ("shape", "dim"), [((5,), 0), ((5, 3), 0), ((3, 5), 1), ((3, 5, 2), 1), ((0, 5), 1)]
)
def test_gather_and_scatter(
    check: Any, dtype: str, shape: tuple[int, ...], dim: int, count: int
) -> None:
    table = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    named = list(shape)
    named[dim] = count
    index = np.random.default_rng(count).integers(0, 5, named)
    check("gather", table, dim, index)
    source = np.arange(index.size).reshape(index.shape)[::-1].astype(dtype) + table.dtype.type(1)
    check("scatter.src", table, dim, index, source)
    check("scatter.src", table, dim, index, np.broadcast_to(table.dtype.type(1), index.shape))


def test_an_index_of_another_size_is_left_to_the_plain_kernel(kernels: Any) -> None:
    table, index = np.ones((3, 4)), np.zeros((2, 2), np.int64)
    assert kernels.gather(table, 1, index) is NotImplemented
    assert kernels.scatter(table, 1, index, np.ones((2, 2))) is NotImplemented
    assert kernels.scatter(table, 1, index[:, 0], np.ones((2, 2))) is NotImplemented


@pytest.mark.parametrize("index", [[0, 5], [-1, 2], [2**62]])
def test_indices_out_of_range_are_left_to_the_plain_kernel(kernels: Any, index: list[int]) -> None:
    table, index = np.ones((5, 2)), np.array(index)
    assert kernels.index_select(table, 0, index) is NotImplemented
    assert kernels.embedding(table, index) is NotImplemented
    table, index = table[:, 0].copy(), index.reshape(-1)
    assert kernels.gather(table, 0, index) is NotImplemented
    assert kernels.scatter(table, 0, index, np.ones(index.shape)) is NotImplemented


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("shape", [(3,), (1, 1), (8, 16), (40, 65), (4, 6, 5, 7, 1), (3, 1030)])
def test_softmax_and_its_gradient(
    check: Any, plain: Any, draw: Any, name: str, shape: tuple[int, ...]
) -> None:
    x = 3 * draw(*shape)
    dim = len(shape) - (2 if shape[-1] == 1 and len(shape) > 2 else 1)
    for given in (dim, dim - len(shape)):
        check(name, x, given, False)
    out = plain[name](x, dim, False)
    check(f"{name}_backward_data", draw(*shape), out, dim, x.dtype, atol=10)
    grad = draw(*shape)
    grad.reshape(-1)[0] = np.nan
    check(f"{name}_backward_data", grad, out, dim, x.dtype, atol=10)


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_rows_with_infinities_and_nan(check: Any, draw: Any, name: str) -> None:
    x = draw(8, 64)
    x[0], x[1, 3], x[2, 5:], x[3], x[4] = -np.inf, -np.inf, -np.inf, 1e30, -1e30
    x[5, 3], x[6, 7], x[6, 3], x[7, 3] = np.inf, np.inf, -np.inf, np.nan
    check(name, x, 1, False)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize(
    ("shape", "last"), [((8, 16), 1), ((5,), 1), ((3, 4, 5), 2), ((70, 200), 1), ((2, 1500), 1)]
)
def test_layer_norm_and_its_gradients(
    check: Any,
    plain: Any,
    draw: Any,
    shape: tuple[int, ...],
    last: int,
    with_weight: bool,
    with_bias: bool,
) -> None:
    x, sizes = 2 * draw(*shape) + 1, shape[len(shape) - last :]
    weight = draw(*sizes) if with_weight else None
    bias = draw(*sizes) if with_bias else None
    check("native_layer_norm", x, sizes, weight, bias, 1e-5, atol=3)
    _, mean, rstd = plain["native_layer_norm"](x, sizes, weight, bias, 1e-5)
    grad = draw(*shape)
    for mask in ((True, True, True), (True, False, False), (False, True, True), [False] * 3):
        arguments = (grad, x, sizes, mean, rstd, weight, bias, mask)
        check("native_layer_norm_backward", *arguments, rtol=5, atol=20)


def test_layer_norm_of_rows_with_one_value_or_nan(check: Any, draw: Any) -> None:
    x = draw(4, 16)
    x[0], x[1, 2], x[2, 3] = 7, np.nan, np.inf
    check("native_layer_norm", x, (16,), None, None, 1e-5, atol=5)
    check("native_layer_norm", x[:1], (16,), None, None, 0.0, atol=5)


@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize(
    ("shape", "last"), [((8, 16), 1), ((5,), 1), ((3, 4, 5), 2), ((70, 200), 1), ((2, 1500), 1)]
)
def test_rms_norm_and_its_gradients(
    check: Any, plain: Any, draw: Any, shape: tuple[int, ...], last: int, with_weight: bool
) -> None:
    x, sizes = 2 * draw(*shape) + 1, shape[len(shape) - last :]
    weight = draw(*sizes) if with_weight else None
    check("_fused_rms_norm", x, sizes, weight, 1e-5, atol=3)
    rstd = plain["_fused_rms_norm"](x, sizes, weight, 1e-5)[1]
    grad = draw(*shape)
    for mask in ((True, True), (True, False), (False, True), [False] * 2):
        arguments = (grad, x, sizes, rstd, weight, mask)
        check("_fused_rms_norm_backward", *arguments, rtol=5, atol=20)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((8, 16), 4),
        ((1, 1), 1),
        ((3, 6, 5), 3),
        ((2, 4, 3, 7), 1),
        ((2, 4, 33, 33), 4),
        ((70, 8, 2, 3), 2),
        ((2, 3, 1500), 3),
    ],
)
def test_group_norm_and_its_gradients(
    check: Any,
    plain: Any,
    draw: Any,
    shape: tuple[int, ...],
    groups: int,
    with_weight: bool,
    with_bias: bool,
) -> None:
    x = 2 * draw(*shape) + 1
    sizes = (*shape[:2], x.size // (shape[0] * shape[1]), groups)
    weight = draw(shape[1]) if with_weight else None
    bias = draw(shape[1]) if with_bias else None
    arguments = (x, weight, bias, *sizes, 1e-5)
    check("native_group_norm", *arguments, rtol=3, atol=3)
    _, mean, rstd = plain["native_group_norm"](*arguments)
    grad = draw(*shape)
    for mask in ((True, True, True), (True, False, False), (False, True, True), [False] * 3):
        arguments = (grad, x, mean, rstd, weight, *sizes, mask)
        check("native_group_norm_backward", *arguments, rtol=10, atol=50)


def test_group_norm_and_rms_norm_of_one_value_infinities_and_nan(check: Any, draw: Any) -> None:
    x = draw(4, 16)
    x[0], x[1, 2], x[2, 3] = 7, np.nan, np.inf
    weight, bias = draw(16), draw(16)
    check("native_group_norm", x, weight, bias, 4, 16, 1, 2, 1e-5, atol=5)
    check("native_group_norm", x[:1], None, None, 1, 4, 4, 2, 0.0, atol=5)
    check("_fused_rms_norm", x, (16,), weight, 1e-5, atol=5)
    check("_fused_rms_norm", 0 * x[:1], (16,), None, 0.0)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((), ()),
        ((1,), (0,)),
        ((700,), (0,)),
        ((8, 16), (0, 1)),
        ((8, 16), (1,)),
        ((8, 16), (0,)),
        ((33, 300), (0,)),
        ((3, 4, 5, 6), (2, 3)),
        ((3, 4, 5, 6), (0, 1)),
        ((3, 4, 5, 6), (3, 0, 1, 2)),
        ((3, 20000), (1,)),
        ((16383,), (0,)),
        ((16384,), (0,)),
        ((3 * 16384 + 1,), (0,)),
        ((4, 1100), (0,)),
    ],
)
def test_sums_and_means(
    check: Any,
    draw: Any,
    name: str,
    keepdim: bool,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
) -> None:
    x = np.asarray(draw(*shape))
    check(name, x, dims, keepdim, x.dtype, rtol=3, atol=50)


@pytest.mark.parametrize("size", [2000, 20_000])
@pytest.mark.parametrize("values", [[np.inf, 1], [np.inf, -np.inf], [np.nan, 1], [-np.inf, -1]])
def test_sums_of_infinities_and_nan(check: Any, draw: Any, values: list[float], size: int) -> None:
    x = draw(size)
    x[[3, size - 100]] = values
    check("sum", x, (0,), False, x.dtype)


@pytest.mark.parametrize("shape", [(100,), (100_000,), (2_000_000,), (30, 40_000), (40_000, 30)])
def test_sums_are_as_exact_as_those_of_numpy(
    kernels: Any, draw: Any, shape: tuple[int, ...]
) -> None:
    x = np.abs(draw(*shape))
    exact = x.astype(np.longdouble)
    for dim in range(x.ndim):
        if x.ndim == 1 or dim in (0, 1):
            true = exact.sum(dim)
            mine = abs(kernels.sum(x, (dim,), False, x.dtype) - true)
            other = abs(np.add.reduce(x, dim) - true)
            ulp = np.spacing(true.astype(x.dtype))
            assert np.max(mine / ulp) <= max(1.0, float(np.max(other / ulp)))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(5,), (8, 16), (3, 4, 70), (2, 4000)])
def test_largest_elements(check: Any, draw: Any, shape: tuple[int, ...], keepdim: bool) -> None:
    x = draw(*shape).round(1)
    for array in (x, np.zeros_like(x), np.full_like(x, -np.inf), np.full_like(x, np.nan)):
        check("max.dim", array, x.ndim - 1, keepdim)
        check("argmax", array, -1, keepdim)
    x[..., [1, 3]] = np.nan
    check("max.dim", x, x.ndim - 1, keepdim)
    x[..., 0] = np.inf
    check("max.dim", x, x.ndim - 1, keepdim)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_nll_loss_and_its_gradient(
    check: Any, draw: Any, reduction: str, with_weight: bool, ignored: int
) -> None:
    x = draw(50, 7)
    target = np.arange(50) * 3 % 7
    target[4] = ignored
    weight = np.abs(draw(7)) if with_weight else None
    check("nll_loss_forward", x, target, weight, reduction, ignored)
    grad = draw(50) if reduction == "none" else np.asarray(draw(1)[0])
    total = np.asarray(x.dtype.type(3.5))
    check("nll_loss_backward", grad, x, target, weight, reduction, ignored, total)


def test_a_mean_over_ignored_targets_is_nan(check: Any, draw: Any) -> None:
    with np.errstate(invalid="ignore"):
        check("nll_loss_forward", draw(3, 4), np.full(3, 1), None, "mean", 1)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", [(1,), (8, 16), (3, 700)])
def test_mse_loss_and_its_gradient(
    check: Any, draw: Any, reduction: str, shape: tuple[int, ...]
) -> None:
    a, b = draw(*shape), draw(*shape)
    check("mse_loss", a, b, reduction, rtol=3)
    check("mse_loss_backward", np.asarray(draw(1)[0]), a, b, reduction)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", "float16"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (2, 0), (2, 1, 2, 3)])
def test_joining(check: Any, dtype: str, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    arrays = [(np.arange(size) + k).reshape(shape).astype(dtype) for k in range(3)]
    for dim in range(-len(shape), len(shape)):
        check("cat", arrays, dim)
        longer = np.concatenate(arrays, dim)
        check("cat", [arrays[0], longer, arrays[1]], dim)
    for dim in range(-len(shape) - 1, len(shape) + 1):
        check("stack", arrays, dim)
    if size:
        check("stack", [array.reshape(-1)[:1].reshape(()) for array in arrays], 0)
