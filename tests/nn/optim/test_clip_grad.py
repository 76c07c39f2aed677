"""nn.utils: gradient clipping and parameter vectors (closed forms and torch)."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad import nn


def with_gradients(library: Any, *gradients: Any) -> list[Any]:
    parameters = []
    for gradient in gradients:
        parameter = library.nn.Parameter(library.zeros(len(gradient)))
        parameter.grad = library.tensor(gradient)
        parameters.append(parameter)
    return parameters


def test_clip_grad_norm_scales_to_the_limit() -> None:
    parameters = with_gradients(plugrad, [3.0], [4.0])
    total = nn.utils.clip_grad_norm_(parameters, 1.0)
    assert total.item() == pytest.approx(5.0)
    assert [p.grad.item() for p in parameters] == pytest.approx([0.6, 0.8], rel=1e-5)


def test_clip_grad_norm_leaves_small_gradients() -> None:
    parameters = with_gradients(plugrad, [3.0, 4.0])
    nn.utils.clip_grad_norm_(parameters, 10.0)
    assert parameters[0].grad.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_clip_grad_norm_agrees_with_torch(torch: Any, norm_type: float) -> None:
    results = []
    for library in (plugrad, torch):
        parameters = with_gradients(library, [1.0, -2.0, 3.0], [4.0])
        total = library.nn.utils.clip_grad_norm_(parameters, 1.5, norm_type)
        results.append([total.item(), *parameters[0].grad.tolist(), parameters[1].grad.item()])
    assert results[0] == pytest.approx(results[1], rel=1e-5)


def test_clip_grad_norm_can_raise_on_infinity() -> None:
    parameters = with_gradients(plugrad, [float("inf")])
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_clip_grad_norm_without_gradients_is_zero() -> None:
    assert nn.utils.clip_grad_norm_([nn.Parameter(plugrad.ones(1))], 1.0).item() == 0.0


def test_clip_grad_value() -> None:
    parameters = with_gradients(plugrad, [3.0, -4.0, 0.5])
    nn.utils.clip_grad_value_(parameters, 1.0)
    assert parameters[0].grad.tolist() == [1.0, -1.0, 0.5]


def test_parameters_round_trip_through_a_vector() -> None:
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert tuple(vector.shape) == (9,)
    nn.utils.vector_to_parameters(vector * 0 + 2.0, layer.parameters())
    assert layer.bias is not None
    assert layer.bias.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="expected a vector of 9 elements"):
        nn.utils.vector_to_parameters(plugrad.ones(8), layer.parameters())
