"""Transforms nest in any order. Oracles: `torch.func` on the same functions, finite differences."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from hypothesis import given

import plugrad
from tests.core.drawing import drawn
from tests.core.transforms.func.nestings import build, descriptions

POINT = np.array([0.4, -0.3, 0.7])
STEP = 1e-6
DEPTH = 4


@given(descriptions(DEPTH))
@drawn(60)
def test_torch_agrees(
    torch_oracle: ModuleType, description: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    found = build(plugrad, *description)(plugrad.from_numpy(POINT.copy()))
    wanted = build(torch_oracle, *description)(torch_oracle.from_numpy(POINT.copy()))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-9)


@given(descriptions(DEPTH - 1))
@drawn(60)
def test_derivatives_of_nestings_are_those_of_finite_differences(
    description: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    function = build(plugrad, *description)
    x = plugrad.from_numpy(POINT.copy())
    direction = plugrad.tensor([1.0, -2.0, 0.5], dtype=plugrad.float64)
    outputs, pull_back = plugrad.func.vjp(function, x)
    cotangent = plugrad.tensor([0.3, 1.0, -0.7], dtype=plugrad.float64)
    forward = (function(x + STEP * direction) - function(x - STEP * direction)) / (2 * STEP)
    wanted = (forward * cotangent).sum().item()
    backward = (pull_back(cotangent)[0] * direction).sum().item()
    scale = 1 + outputs.abs().max().item()
    np.testing.assert_allclose(backward, wanted, rtol=1e-4, atol=1e-5 * scale)
    _, product = plugrad.func.jvp(function, (x,), (direction,))
    np.testing.assert_allclose((product * cotangent).sum().item(), backward, rtol=1e-8, atol=1e-9)
