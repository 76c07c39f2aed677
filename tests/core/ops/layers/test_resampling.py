"""Images of another size, places of a grid: the shared suite, and the edges it does not reach."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.on_demand.composite.resampling import resample
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite, needs_torch, torch


class TestResampling(OpSuite):
    cases = family_cases("resampling")


def test_infinite_pixels_stay_where_they_are() -> None:
    x = plugrad.tensor([[[math.inf, 1.0, 2.0, 3.0]]])
    assert plugrad.upsample_nearest1d(x, [8]).tolist()[0][0][2:] == [1, 1, 2, 2, 3, 3]
    shrunk = plugrad.upsample_linear1d(x, [2], False)
    assert shrunk.tolist() == [[[math.inf, 2.5]]]


def test_infinite_gradient_reaches_its_own_pixel_only() -> None:
    x = plugrad.ones(1, 1, 3, requires_grad=True)
    plugrad.upsample_nearest1d(x, [7]).backward(plugrad.tensor([[[math.inf] + [1.0] * 6]]))
    assert x.grad is not None
    assert x.grad.tolist() == [[[math.inf, 2, 2]]]


# Dimensions that grow by whole factors, few and many, or by others, that shrink and that stay.
@pytest.mark.parametrize("sizes", [(8, 3, 9), (4, 7, 36), (2, 2, 8), (4, 3, 4), (5, 1, 7)])
def test_nearest_elements_of_volumes_are_those_that_divide(sizes: tuple[int, int, int]) -> None:
    x = np.random.default_rng(0).normal(size=(2, 1, 4, 3, 4)).astype(np.float32)
    places = [
        np.arange(size) * length // size for size, length in zip(sizes, x.shape[2:], strict=True)
    ]
    given = plugrad.from_numpy(x)
    found = plugrad.upsample_nearest3d(given, list(sizes))
    np.testing.assert_array_equal(found.numpy(), x[:, :, *np.ix_(*places)])
    assert found.is_contiguous()
    assert found.data_ptr() != given.data_ptr()


@needs_torch
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("align_corners", [True, False])
def test_grid_at_pixels_and_edges_matches_torch(
    mode: int, padding: int, align_corners: bool
) -> None:
    pixels = np.random.default_rng(0).normal(size=(1, 2, 3, 4))
    places = np.stack(np.meshgrid(np.arange(-3, 4) / 2, np.arange(-2, 3)), -1)[None] * 1.0
    found = []
    for library in (plugrad, torch):
        image = library.tensor(pixels, requires_grad=True)
        grid = library.tensor(places, requires_grad=True)
        out = library.grid_sampler(image, grid, mode, padding, align_corners)
        (out * out).sum().backward()
        found.append([value.detach().numpy() for value in (out, image.grad, grid.grad)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_upsampling_under_vmap_checks_logical_dimensions() -> None:
    x = plugrad.ones(3, 1, 2, 4)
    out = plugrad.vmap(lambda t: plugrad.upsample_linear1d(t, [6], False))(x)
    assert tuple(out.shape) == (3, 1, 2, 6)
    with pytest.raises(RuntimeError, match="It is expected input_size equals to 3, but got size 2"):
        plugrad.vmap(lambda t: plugrad.upsample_linear1d(t, [6], False))(x[0])


@pytest.mark.parametrize("name", ["upsample_bilinear2d", "upsample_bicubic2d"])
@pytest.mark.parametrize("size", [(40, 35), (9, 50)])
def test_an_image_of_several_blocks_of_weights(name: str, size: tuple[int, int]) -> None:
    """The oracle is the decomposition, which runs where an element is not finite: next to it, and
    only there, the results differ."""
    x = plugrad.randn(2, 3, 21, 20, generator=plugrad.Generator().manual_seed(0))
    marred = x.clone()
    marred[:, :, 0, 0] = float("inf")
    found, expected = (getattr(plugrad, name)(a, size, False) for a in (x, marred))
    finite = expected.isfinite()
    assert finite[:, :, size[0] // 2 :, size[1] // 2 :].all()
    assert not finite.all()
    plugrad.testing.assert_close(found[finite], expected[finite])


BYTE_MODES = {
    "upsample_bilinear2d": "linear",
    "upsample_bicubic2d": "cubic",
    "_upsample_bilinear2d_aa": "linear-aa",
    "_upsample_bicubic2d_aa": "cubic-aa",
    "_upsample_lanczos2d_aa": "lanczos-aa",
}


@needs_torch
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("name", BYTE_MODES)
def test_bytes_are_resized_as_in_torch(name: str, align_corners: bool) -> None:
    """The kernel and the decomposition, on few values, of which many are halfway, and on all."""
    generator = np.random.default_rng(0)
    for number in range(40):
        shape = (2, 3, *generator.integers(1, 30, 2).tolist())
        x = generator.integers(0, (2, 256)[number % 2], shape).astype(np.uint8)
        # PyTorch reads other memory where the result has a width of 1.
        size = generator.integers(2, 40, 2).tolist()
        scales = (None, None) if number % 3 else (1.3, 0.7)
        theirs = getattr(torch._C._nn, name)(torch.from_numpy(x), size, align_corners, *scales)
        ours = getattr(plugrad, name)(plugrad.from_numpy(x), size, align_corners, *scales)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        given: Any = plugrad.from_numpy(x)
        numbers = tuple([scale or 0.0 for scale in scales])
        composed = resample(given, tuple(size), BYTE_MODES[name], align_corners, numbers)
        np.testing.assert_array_equal(composed.numpy(), theirs.numpy())


@needs_torch
@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("last", [False, True])
def test_nearest_pixels_of_scales_near_two_are_those_of_torch(last: bool, channels: int) -> None:
    """Whose kernel for small images ignores scales where an image keeps or doubles its size."""
    generator = np.random.default_rng(0)
    for number in range(60):
        size = generator.integers(1, 9, 2).tolist()
        scales = [generator.uniform(1, 2.5), generator.uniform(5, 40)][:: (-1) ** number]
        x = generator.standard_normal((1, channels, *size)).astype(np.float32)
        theirs, ours = torch.from_numpy(x), plugrad.from_numpy(x)
        if last:
            theirs = theirs.contiguous(memory_format=torch.channels_last)
            ours = ours.contiguous(memory_format=plugrad.channels_last)
        expected = torch._C._nn.upsample_nearest2d(theirs, None, scales)
        found = plugrad.upsample_nearest2d(ours, None, scales)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_bytes_halfway_between_two_round_up() -> None:
    x = plugrad.tensor([[[[0, 1], [0, 3]]]], dtype=plugrad.uint8)
    resized = plugrad.upsample_bilinear2d(x, [3, 3], True)
    # The second column first: of 0.5 and 1.5 come 1 and 2; between the rows, 1.5 gives 2.
    assert resized.tolist() == [[[[0, 1, 1], [0, 2, 2], [0, 2, 3]]]]


def test_grid_sampler_backward_refuses_gradients_of_another_shape() -> None:
    image, grid = plugrad.ones(1, 1, 2, 2), plugrad.zeros(1, 1, 2, 2)
    with pytest.raises(RuntimeError, match=r"of shape \[1, 1, 1, 2\], but got \[1, 1, 2, 2\]"):
        plugrad.grid_sampler_2d_backward(image, image, grid, 0, 0, False, (True, True))


def test_unknown_modes_of_grids_are_refused_backward_too() -> None:
    image, grid = plugrad.ones(1, 1, 2, 2), plugrad.zeros(1, 1, 1, 2)
    out = plugrad.ones(1, 1, 1, 1)
    for mode, padding, told in ((3, 0, "interpolation_mode"), (0, 3, "padding_mode")):
        with pytest.raises(RuntimeError, match=f"expected {told} to be 0, 1 or 2, but got 3"):
            plugrad.grid_sampler_2d(image, grid, mode, padding, False)
        with pytest.raises(RuntimeError, match=f"expected {told} to be 0, 1 or 2, but got 3"):
            plugrad.grid_sampler_2d_backward(out, image, grid, mode, padding, False, (True, True))
