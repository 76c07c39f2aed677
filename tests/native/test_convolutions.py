"""Convolutions of 3 x 3 by tiles, beside sums in float64: sizes, layouts, inf and nan, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrad
import plugrad.nn.functional as F
from plugrad.testing import assert_close

pytest.importorskip("plugrad_native.compiled")

Array = Any
# Images, channels, height, width, filters; padding.
CASES = [
    ((4, 16, 14, 14, 16), (1, 1)),
    ((2, 20, 15, 13, 19), (1, 1)),
    ((3, 5, 33, 17, 13), (2, 2)),
    ((3, 5, 19, 18, 7), (0, 0)),
    ((9, 6, 1, 30, 8), (1, 2)),
    ((5, 7, 12, 10, 6), (2, 0)),
    ((40, 1, 9, 9, 8), (1, 1)),
    ((16, 8, 10, 10, 1), (1, 1)),
    ((1, 64, 30, 30, 65), (1, 1)),  # several blocks of an image
    ((70, 3, 8, 8, 16), (1, 1)),  # several images of a block
]
ONE, NONE = (1, 1), (0, 0)


def convolved(x: Array, weight: Array, padding: tuple[int, int]) -> Array:
    """The sums, in float64."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in padding)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwab,ocab->nohw", windows, weight.astype(np.float64))


def gradients(
    grad: Array, x: Array, weight: Array, padding: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Of the sums, in float64."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in padding)])
    to_padded = np.zeros_like(padded)
    to_weight = np.zeros(weight.shape)
    high, wide = grad.shape[2:]
    for a in range(3):
        for b in range(3):
            tap = weight[:, :, a, b].astype(np.float64)
            to_padded[:, :, a : a + high, b : b + wide] += np.einsum("nohw,oc->nchw", grad, tap)
            read = padded[:, :, a : a + high, b : b + wide]
            to_weight[:, :, a, b] = np.einsum("nohw,nchw->oc", grad, read)
    inside = [slice(p, p + size) for p, size in zip(padding, x.shape[2:], strict=True)]
    return to_padded[:, :, *inside], to_weight, grad.sum((0, 2, 3), np.float64)


def near(found: Array, expected: Array) -> None:
    assert type(found) is np.ndarray
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-6 * np.abs(expected).max())


Drawn = Callable[..., tuple[Array, Array, Array, Array]]


@pytest.fixture
def drawn() -> Drawn:
    """Images, filters, a bias, and a gradient."""

    def draw(sizes: tuple[int, ...], padding: tuple[int, int]) -> tuple[Array, ...]:
        n, c, high, wide, o = sizes
        generator = np.random.default_rng(n + c)
        out = (n, o, high + 2 * padding[0] - 2, wide + 2 * padding[1] - 2)
        shapes = (n, c, high, wide), (o, c, 3, 3), (o,), out
        return tuple(generator.standard_normal(shape, np.float32) for shape in shapes)

    return draw


@pytest.mark.parametrize(("sizes", "padding"), CASES)
def test_results_and_gradients(kernels: Any, drawn: Drawn, sizes: Any, padding: Any) -> None:
    x, weight, bias, grad = drawn(sizes, padding)
    expected = convolved(x, weight, padding)
    rest = (ONE, padding, ONE, False)
    near(kernels.convolution(x, weight, None, *rest, NONE, 1), expected)
    expected += bias[:, None, None]
    near(kernels.convolution(x, weight, bias, *rest, NONE, 1), expected)
    made = gradients(grad, x, weight, padding)
    for found, one in zip(
        kernels.convolution_backward(grad, x, weight, *rest, 1, (True, True, True)),
        made,
        strict=True,
    ):
        near(found, one)
    # The same as the transposed convolution of the gradient.
    near(kernels.convolution(grad, weight, None, ONE, padding, ONE, True, NONE, 1), made[0])


@pytest.mark.parametrize("mask", [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
def test_the_mask_chooses_gradients(kernels: Any, drawn: Drawn, mask: Any) -> None:
    x, weight, _, grad = drawn((4, 16, 14, 14, 16), ONE)
    expected = gradients(grad, x, weight, ONE)
    mask = tuple(map(bool, mask))
    found = kernels.convolution_backward(grad, x, weight, ONE, ONE, ONE, False, 1, mask)
    for wanted, one, other in zip(mask, found, expected, strict=True):
        if wanted:
            near(one, other)
        else:
            assert one is None


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*(st.integers(1, high) for high in (6, 9, 23, 40, 14))),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_any_sizes(sizes: Any, padding: Any) -> None:
    """Served or not, and no element outside is read or written."""
    from plugrad_native import compiled

    n, c, high, wide, o = sizes
    out = (n, o, high + 2 * padding[0] - 2, wide + 2 * padding[1] - 2)
    if min(out) < 1:
        return
    generator = np.random.default_rng(0)
    x = generator.standard_normal((n, c, high, wide), np.float32)
    weight = generator.standard_normal((o, c, 3, 3), np.float32)
    grad = generator.standard_normal(out, np.float32)
    rest = (ONE, padding, ONE, False)
    found = compiled.kernel("convolution")(x, weight, None, *rest, NONE, 1)
    if found is not NotImplemented:
        near(found, convolved(x, weight, padding))
    made = compiled.kernel("convolution_backward")(grad, x, weight, *rest, 1, (True, True, True))
    if made is not NotImplemented:
        for one, other in zip(made, gradients(grad, x, weight, padding), strict=True):
            near(one, other)


def test_whole_numbers_are_exact(kernels: Any) -> None:
    generator = np.random.default_rng(2)
    x = generator.integers(-9, 9, (4, 16, 14, 14)).astype(np.float32)
    weight = generator.integers(-9, 9, (16, 16, 3, 3)).astype(np.float32)
    rest = (ONE, ONE, ONE, False)
    found = kernels.convolution(x, weight, None, *rest, NONE, 1)
    np.testing.assert_array_equal(found, convolved(x, weight, ONE))
    made = kernels.convolution_backward(found, x, weight, *rest, 1, (True, True, True))
    assert np.array_equal(made[0], gradients(found, x, weight, ONE)[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["image", "filter", "bias", "grad"])
def test_what_would_spread_is_declined(kernels: Any, drawn: Drawn, bad: float, place: str) -> None:
    """One element of the image that is inf would make all results of its tile nan."""
    x, weight, bias, grad = drawn((4, 16, 14, 14, 16), ONE)
    spoilt = {"image": x[1, 3, 5], "filter": weight[7, 3, 1], "bias": bias, "grad": grad[2, 4, 9]}
    spoilt[place][2] = bad
    rest = (ONE, ONE, ONE, False)
    found = kernels.convolution(x, weight, bias, *rest, NONE, 1)
    assert (found is NotImplemented) == (place != "grad")
    for mask in ((True, False, False), (False, True, True)):
        made = kernels.convolution_backward(grad, x, weight, *rest, 1, mask)
        reads = {"grad", "filter" if mask[0] else "image"}
        assert (made is NotImplemented) == (place in reads)


@pytest.mark.usefixtures("native")
def test_inf_and_nan_stay_where_they_are() -> None:
    x, weight = plugrad.ones(4, 16, 14, 14), plugrad.ones(16, 16, 3, 3)
    x[0, 0, 5, 5] = plugrad.inf
    x[1, 0, 5, 5] = plugrad.nan
    found = F.conv2d(x, weight, padding=1)
    assert int(found.isinf().sum()) == int(found.isnan().sum()) == 9 * 16
    assert float(found[0, 0, 7, 7]) == 144


def test_zeros_beside_a_single_one_are_exact(kernels: Any, drawn: Drawn) -> None:
    """Which elements a result depends on must be seen in its gradient."""
    x, weight, _, grad = drawn((4, 16, 14, 14, 16), ONE)
    grad[:] = 0
    grad[1, 3, 6, 6] = 1
    rest = (ONE, ONE, ONE, False)
    for mask in ((True, False, False), (False, True, True)):
        assert kernels.convolution_backward(grad, x, weight, *rest, 1, mask) is NotImplemented
    single = np.zeros_like(x)
    single[1, 3, 6, 6] = 1
    assert kernels.convolution(single, weight, None, *rest, NONE, 1) is NotImplemented
    assert not kernels.convolution(np.zeros_like(x), weight, None, *rest, NONE, 1).any()


def test_small_elements_beside_a_large_one_are_not_lost(kernels: Any, drawn: Drawn) -> None:
    x, weight, _, _ = drawn((4, 16, 14, 14, 16), ONE)
    rest = (ONE, ONE, ONE, False, NONE, 1)
    x[2, 5, 6, 6] = 100
    near(kernels.convolution(x, weight, None, *rest), convolved(x, weight, ONE))
    x[2, 5, 6, 6] = 1e6
    assert kernels.convolution(x, weight, None, *rest) is NotImplemented
    x[2, 5, 6, 6] = 1
    assert kernels.convolution(x, weight, None, *rest) is not NotImplemented
    weight[3, 2, 1, 1] = 1e6
    assert kernels.convolution(x, weight, None, *rest) is NotImplemented


@pytest.fixture
def threads(kernels: Any) -> Iterator[Callable[[int], None]]:
    """Sets how many threads calls may use."""
    allowed = [1]
    kernels.use_thread_count(lambda: allowed[0])
    yield lambda count: allowed.__setitem__(0, count)
    kernels.use_thread_count(None)


@pytest.mark.parametrize("sizes", [(33, 16, 31, 32, 33), (8, 64, 16, 16, 64), (2, 3, 60, 50, 9)])
def test_threads_give_the_same_bits(
    kernels: Any, threads: Callable[[int], None], drawn: Drawn, sizes: Any
) -> None:
    x, weight, bias, grad = drawn(sizes, ONE)
    rest = (ONE, ONE, ONE, False)

    def results() -> list[Array]:
        made = kernels.convolution_backward(grad, x, weight, *rest, 1, (True, True, True))
        return [kernels.convolution(x, weight, bias, *rest, NONE, 1), *made]

    expected = results()
    for count in (2, 3, 5):
        threads(count)
        for _ in range(4):
            for found, one in zip(results(), expected, strict=True):
                np.testing.assert_array_equal(found, one)


@pytest.mark.parametrize("transposed", [False, True])
def test_layers_use_them(request: pytest.FixtureRequest, transposed: bool) -> None:
    layer = F.conv_transpose2d if transposed else F.conv2d
    generator = np.random.default_rng(5)
    shapes = (8, 16, 14, 14), (16, 16, 3, 3), (16,)
    arrays = [generator.standard_normal(shape, np.float32) for shape in shapes]

    def results() -> list[Any]:
        x, weight, bias = (plugrad.tensor(array, requires_grad=True) for array in arrays)
        out = layer(x, weight, bias, padding=1)
        out.sum().backward()  # whose gradient repeats one number
        return [out, x.grad, weight.grad, bias.grad]

    expected = results()
    request.getfixturevalue("native")
    with plugrad.record_dispatch_trace() as events:
        found = results()
    ran = [event.op for event in events if event.kind == "variant"]
    assert "plugrad::convolution" in ran
    assert ("plugrad::convolution_backward" in ran) != transposed
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("native")
def test_the_gradient_of_the_gradient() -> None:
    generator = np.random.default_rng(6)
    x = plugrad.tensor(generator.standard_normal((8, 4, 10, 10), np.float32), requires_grad=True)
    weight = plugrad.tensor(generator.standard_normal((4, 4, 3, 3), np.float32))

    def penalty(dtype: Any) -> Any:
        given = x.detach().to(dtype).requires_grad_()
        out = F.conv2d(given, weight.to(dtype), padding=1)
        (slope,) = plugrad.autograd.grad(out.square().sum(), given, create_graph=True)
        return plugrad.autograd.grad(slope.square().sum(), given)[0]

    found, expected = penalty(plugrad.float32), penalty(plugrad.float64)
    assert_close(found.double(), expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
