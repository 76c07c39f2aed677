"""Sizes and numbers that are NumPy's integers, or tensors: the same as Python's, also where a small
unsigned integer would overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn

F = nn.functional

SIGNALS = plugrad.arange(64.0).reshape(2, 4, 8)
IMAGES = plugrad.arange(128.0).reshape(1, 2, 8, 8)
VOLUMES = plugrad.arange(128.0).reshape(1, 2, 4, 4, 4)
ROWS = plugrad.arange(8.0).reshape(2, 4)

FUNCTIONS = [
    "F.interpolate(IMAGES, i(4))",
    "F.interpolate(IMAGES, (i(4), i(3)))",
    "F.interpolate(IMAGES, [i(4), 3], mode='bilinear')",
    "F.interpolate(IMAGES, i(4), mode='area')",
    "F.interpolate(IMAGES, scale_factor=i(2))",
    "nn.Upsample((i(4), i(3)))(IMAGES)",
    "nn.UpsamplingNearest2d(i(4))(IMAGES)",
    "F.pad(SIGNALS, (i(1), i(2)))",
    "F.pad(SIGNALS, (i(1), i(2)), value=i(3))",
    "F.pad(IMAGES, (i(1), i(2), i(1), i(0)), mode='reflect')",
    "F.pad(VOLUMES, (i(1),) * 6, mode='replicate')",
    "F.pad(SIGNALS, [i(1), i(2)], mode='circular')",
    "nn.ConstantPad2d(i(1), i(3))(IMAGES)",
    "nn.ZeroPad3d(i(1))(VOLUMES)",
    "nn.ReflectionPad1d((i(1), i(2)))(SIGNALS)",
    "nn.ReplicationPad2d(i(1))(IMAGES)",
    "nn.CircularPad3d(i(1))(VOLUMES)",
    "F.conv1d(SIGNALS, plugrad.ones(4, 4, 2), None, i(1), i(2), i(2))",
    "F.conv2d(IMAGES, plugrad.ones(2, 1, 2, 2), None, (i(2), i(1)), i(1), i(1), i(2))",
    "F.conv_transpose3d(VOLUMES, plugrad.ones(2, 2, 2, 2, 2), None, i(2), i(1), i(1))",
    "F.max_pool2d(IMAGES, i(3), i(2), i(1))",
    "F.avg_pool1d(SIGNALS, i(3), i(2), i(1))",
    "F.adaptive_avg_pool2d(IMAGES, (i(3), i(2)))",
    "F.adaptive_max_pool1d(SIGNALS, i(3))",
    "nn.LPPool2d(2, i(3), i(2))(IMAGES)",
    "nn.FractionalMaxPool2d(i(2), i(3))(IMAGES).shape",
    "nn.FractionalMaxPool3d((i(2),) * 3, (i(2),) * 3)(VOLUMES).shape",
    "F.max_unpool2d(*F.max_pool2d(IMAGES, 2, return_indices=True), i(2), i(2))",
    "F.fold(plugrad.ones(1, 8, 4), i(3), i(2))",
    "F.unfold(IMAGES, i(3), i(2), i(1), i(2))",
    "F.one_hot(plugrad.tensor([1, 2]), i(4))",
    "F.layer_norm(ROWS, (i(4),))",
    "nn.GroupNorm(i(2), i(4))(SIGNALS)",
    "nn.LocalResponseNorm(i(2))(IMAGES)",
    "nn.Unflatten(i(1), (2, 2))(ROWS)",
    "nn.PixelShuffle(i(2))(plugrad.ones(1, 4, 2, 2))",
    "F.ctc_loss(plugrad.zeros(4, 1, 3), plugrad.tensor([[1]]), (i(4),), (i(1),), i(0))",
    "F.affine_grid(plugrad.ones(1, 2, 3), [i(1), i(1), i(2), i(2)], False)",
]


def value(expression: str, i: Callable[[int], Any]) -> Any:
    found = eval(expression, {**globals(), "i": i})
    return found.tolist() if isinstance(found, plugrad.Tensor) else found


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("expression", FUNCTIONS)
def test_integers_of_numpy_are_integers(expression: str, kind: Callable[[int], Any]) -> None:
    assert value(expression, kind) == value(expression, int)


@pytest.mark.parametrize("expression", [one for one in FUNCTIONS if "interpolate(" in one][:4])
def test_tensors_are_sizes_of_images(expression: str) -> None:
    assert value(expression, plugrad.tensor) == value(expression, int)


@pytest.mark.parametrize("size", [6.0, (6.0,), "6", np.float64(6), (None,)])
def test_other_sizes_of_images_are_refused(size: Any) -> None:
    with pytest.raises(TypeError, match="size"):
        F.interpolate(SIGNALS, size)


@pytest.mark.parametrize("pad", [(1.0, 1), (1, "1"), (None, 1)])
def test_other_widths_are_refused(pad: Any) -> None:
    with pytest.raises(TypeError, match=r"pad\(\): argument 'pad' \(position 2\) must be"):
        F.pad(SIGNALS, pad)
