"""Convolution and pooling in `nn.functional`: signatures, defaults and errors.

Oracles: PyTorch, and closed forms where it is not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import plugrad
from plugrad.nn import functional as F

Compare = Callable[..., None]

SIGNAL: Final = (2, 3, 9)
IMAGE: Final = (2, 3, 6, 7)
VOLUME: Final = (2, 2, 4, 5, 4)


def of(samples: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).random(samples)


# Name, shape of the input, and the rest; arrays become tensors.
CALLS: Final[dict[str, tuple[str, tuple[int, ...], dict[str, Any]]]] = {
    "conv3d": ("conv3d", VOLUME, {"weight": of((4, 1, 2, 1, 3)), "groups": 2, "padding": "same"}),
    "conv_transpose1d": (
        "conv_transpose1d",
        SIGNAL,
        {"weight": of((3, 2, 3)), "bias": of((2,)), "stride": 2, "output_padding": 1},
    ),
    "conv_transpose2d": (
        "conv_transpose2d",
        IMAGE,
        {"weight": of((3, 2, 2, 3)), "padding": (1, 0)},
    ),
    "conv_transpose3d": (
        "conv_transpose3d",
        VOLUME,
        {"weight": of((2, 3, 2, 1, 2)), "dilation": 2},
    ),
    "max_pool1d": ("max_pool1d", SIGNAL, {"kernel_size": 3, "stride": 2, "padding": 1}),
    "max_pool1d indices": ("max_pool1d", SIGNAL, {"kernel_size": (2,), "return_indices": True}),
    "max_pool1d_with_indices": ("max_pool1d_with_indices", SIGNAL, {"kernel_size": 2}),
    "max_pool2d_with_indices": ("max_pool2d_with_indices", IMAGE, {"kernel_size": 2}),
    "max_pool3d": ("max_pool3d", VOLUME, {"kernel_size": 2, "ceil_mode": True}),
    "max_pool3d indices": ("max_pool3d", VOLUME, {"kernel_size": 2, "return_indices": True}),
    "max_pool3d_with_indices": ("max_pool3d_with_indices", VOLUME, {"kernel_size": (2, 1, 2)}),
    "avg_pool3d": ("avg_pool3d", VOLUME, {"kernel_size": 2, "padding": 1, "divisor_override": 3}),
    "lp_pool1d": ("lp_pool1d", SIGNAL, {"norm_type": 2, "kernel_size": 3, "ceil_mode": True}),
    "lp_pool2d": ("lp_pool2d", IMAGE, {"norm_type": 3.0, "kernel_size": (2, 3), "stride": 1}),
    "lp_pool3d": ("lp_pool3d", VOLUME, {"norm_type": 1.5, "kernel_size": 2}),
    "greatest": ("lp_pool2d", IMAGE, {"norm_type": float("inf"), "kernel_size": 2}),
    "least": ("lp_pool1d", SIGNAL, {"norm_type": -float("inf"), "kernel_size": 2, "stride": 1}),
    "adaptive_avg_pool1d": ("adaptive_avg_pool1d", SIGNAL, {"output_size": 4}),
    "adaptive_avg_pool3d": ("adaptive_avg_pool3d", VOLUME, {"output_size": (3, None, 2)}),
    "adaptive_max_pool1d": ("adaptive_max_pool1d", SIGNAL, {"output_size": 4}),
    "adaptive_max_pool2d": (
        "adaptive_max_pool2d",
        IMAGE,
        {"output_size": (None, 3), "return_indices": True},
    ),
    "adaptive_max_pool2d_with_indices": (
        "adaptive_max_pool2d_with_indices",
        IMAGE,
        {"output_size": 2},
    ),
    "adaptive_max_pool3d": ("adaptive_max_pool3d", VOLUME, {"output_size": (3, 2, 3)}),
    "fractional_max_pool2d": (
        "fractional_max_pool2d",
        IMAGE,
        {"kernel_size": 2, "output_ratio": (0.5, 0.7), "_random_samples": of((2, 3, 2))},
    ),
    "fractional_max_pool3d": (
        "fractional_max_pool3d_with_indices",
        VOLUME,
        {"kernel_size": (1, 2, 1), "output_size": (3, 2, 2), "_random_samples": of((2, 2, 3))},
    ),
    "unfold": ("unfold", IMAGE, {"kernel_size": (2, 3), "padding": 1, "stride": (2, 1)}),
    "fold": ("fold", (2, 12, 12), {"output_size": (4, 5), "kernel_size": 2}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_values_and_gradients_are_pytorchs(
    torch: Any, rng: np.random.Generator, assert_equal_to_torch: Compare, name: str
) -> None:
    function, shape, options = CALLS[name]
    values = rng.permutation(np.arange(np.prod(shape))).reshape(shape) / 7.0 + 0.5
    results: list[list[Any]] = []
    for library in (plugrad, torch):
        x = library.tensor(values).requires_grad_(True)
        given = {
            key: library.tensor(value) if isinstance(value, np.ndarray) else value
            for key, value in options.items()
        }
        found = getattr(library.nn.functional, function)(x, **given)
        outputs = list(found) if isinstance(found, tuple) else [found]
        outputs[0].square().sum().backward()
        results.append([*outputs, x.grad])
    for actual, expected in zip(*results, strict=True):
        assert str(actual.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        assert_equal_to_torch(actual, expected)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_unpooling_puts_maxima_back(spatial: int) -> None:
    size = (2, 3, *(4,) * spatial)
    x = plugrad.arange(float(np.prod(size))).reshape(size)
    pool = getattr(F, f"max_pool{spatial}d")
    found, indices = pool(x, 2, return_indices=True)
    back = getattr(F, f"max_unpool{spatial}d")(found, indices, 2)
    assert back.shape == x.shape
    assert plugrad.equal(pool(back, 2), found)
    assert back.count_nonzero() == found.count_nonzero()


def test_unpooling_to_a_size_that_pooling_makes_the_same_of() -> None:
    x = plugrad.arange(15.0).reshape(1, 3, 5)
    found, indices = F.max_pool2d(x, 2, return_indices=True)
    assert F.max_unpool2d(found, indices, 2, output_size=(1, 1, 3, 5)).shape == (1, 3, 5)
    with pytest.raises(ValueError, match=r"dim 1 must be between 2 and 6"):
        F.max_unpool2d(found, indices, 2, output_size=(3, 6))
    with pytest.raises(ValueError, match="2 or 4 elements, but it has a length of '3'"):
        F.max_unpool2d(found, indices, 2, output_size=(3, 5, 5))


def test_folding_what_was_unfolded_counts_the_windows() -> None:
    ones = plugrad.ones(1, 1, 3, 4)
    folded = F.fold(F.unfold(ones, 2), (3, 4), 2)
    assert folded.tolist() == [[[[1, 2, 2, 1], [2, 4, 4, 2], [1, 2, 2, 1]]]]


def test_fractional_pooling_draws_where_windows_are() -> None:
    plugrad.manual_seed(0)
    x = plugrad.arange(400.0).reshape(1, 1, 20, 20)
    drawn = [F.fractional_max_pool2d(x, 2, 13) for _ in range(4)]
    assert all(one.shape == (1, 1, 13, 13) for one in drawn)
    assert any(not plugrad.equal(one, drawn[0]) for one in drawn)
    assert all(one[0, 0, -1, -1] == 399 for one in drawn)


def test_a_norm_of_zeros_has_a_gradient_of_zero() -> None:
    x = plugrad.zeros(1, 1, 4, requires_grad=True)
    F.lp_pool1d(x, 1.0, 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[0, 0, 0, 0]]]


def test_pooling_writes_to_out() -> None:
    x = plugrad.arange(4.0).reshape(1, 2, 2)
    out = plugrad.empty(1, 1, 1)
    assert F.avg_pool2d(x, 2, out=out) is out
    assert out.item() == 1.5


ERRORS: Final[dict[str, tuple[type[Exception], str, Callable[[Any], Any]]]] = {
    "no size": (
        ValueError,
        "requires specifying either an output_size or an output_ratio",
        lambda L: L.nn.functional.fractional_max_pool2d(L.ones(1, 3, 3), 2),
    ),
    "three sizes of an image": (
        RuntimeError,
        "output_size",
        lambda L: L.nn.functional.adaptive_avg_pool2d(L.ones(1, 1, 3, 3), (1, 2, 3)),
    ),
    "too few dimensions": (
        ValueError,
        "Input dimension should be at least 4",
        lambda L: L.nn.functional.adaptive_max_pool3d(L.ones(3), (1, 2, 3)),
    ),
    "negative unpooled size": (
        ValueError,
        "output_size",
        lambda L: L.nn.functional.max_unpool2d(
            L.ones(1, 1, 1), L.zeros(1, 1, 1, dtype=L.int64), 1, padding=2
        ),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    kind, words, program = ERRORS[name]
    with pytest.raises(kind, match=words):
        program(plugrad)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(torch: Any, name: str) -> None:
    kind, words, program = ERRORS[name]
    with pytest.raises(kind, match=words):
        program(torch)
