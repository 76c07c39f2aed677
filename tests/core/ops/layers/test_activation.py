"""Activation functions: the shared suite, and what it cannot express."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.composite import activation as decompositions
from plugrad.testing.cases import family_cases
from plugrad_cpu.numerics.erf import erf
from tests.core.ops.harness import OpSuite


class TestActivation(OpSuite):
    cases = family_cases("activation")


@pytest.mark.parametrize("size", [4, 4000])
def test_relu_gradient_of_inf_is_masked_not_multiplied(size: int) -> None:
    x = plugrad.full((size,), -1.0, requires_grad=True)
    plugrad.relu(x).backward(plugrad.full((size,), math.inf))
    assert (x.grad == 0).all().item()


def test_relu_has_no_gradient_at_zero() -> None:
    x = plugrad.zeros(1, requires_grad=True)
    plugrad.relu(x).backward()
    assert x.grad.tolist() == [0]


def test_relu_in_place_keeps_what_its_gradient_needs() -> None:
    x = plugrad.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    assert y.relu_() is y
    y.sum().backward()
    assert x.grad.tolist() == [0, 1]


@pytest.mark.parametrize("relu", [plugrad.relu, plugrad.relu_])
def test_relu_rejects_bool_and_complex_numbers(relu: Any) -> None:
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        relu(plugrad.tensor([True]))
    with pytest.raises(NotImplementedError, match="clamp is not supported for complex types"):
        relu(plugrad.tensor([-1j]))


def test_a_result_does_not_tell_the_input_of_leaky_relu_with_a_negative_slope() -> None:
    grad, result = plugrad.ones(2), plugrad.tensor([1.0, -1.0])
    with pytest.raises(RuntimeError, match="triggered with a negative slope"):
        plugrad.leaky_relu_backward(grad, result, -0.5, True)
    assert plugrad.leaky_relu_backward(grad, result, -0.5, False).tolist() == [1, -0.5]


def values() -> Any:
    return plugrad.from_numpy(np.random.default_rng(0).uniform(-3, 3, (3, 4)))


DECOMPOSED: list[tuple[str, tuple[Any, ...]]] = [
    ("relu", ()),
    ("threshold", (0.5, 2.0)),
    ("hardtanh", (-1.0, 0.5)),
    ("leaky_relu", (0.1,)),
    ("elu", (0.5, 2.0, 1.5)),
    ("gelu", ("none",)),
    ("gelu", ("tanh",)),
    ("silu", ()),
    ("softplus", (2.0, 1.5)),
    ("log_sigmoid", ()),
]
DECOMPOSED_GRADIENTS: list[tuple[str, tuple[Any, ...]]] = [
    ("threshold_backward", (0.5,)),
    ("hardtanh_backward", (-1.0, 0.5)),
    ("leaky_relu_backward", (0.1, False)),
    ("gelu_backward", ("none",)),
    ("gelu_backward", ("tanh",)),
    ("silu_backward", ()),
    ("tanh_backward", ()),
    ("sigmoid_backward", ()),
    ("softplus_backward", (2.0, 1.5)),
]


def by_kernel(name: str, *args: Any) -> Any:
    return getattr(plugrad.ops.plugrad, name)(*_named(name, args)[0], **_named(name, args)[1])


def _named(name: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if name.startswith("gelu"):
        return args[:-1], {"approximate": args[-1]}
    return args, {}


def assert_agree(function: Callable[..., Any], name: str, *args: Any) -> None:
    np.testing.assert_allclose(
        by_kernel(name, *args).numpy(), function(*args).numpy(), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize(("name", "settings"), DECOMPOSED)
def test_decomposition_agrees_with_the_kernel(name: str, settings: tuple[Any, ...]) -> None:
    assert_agree(getattr(decompositions, name), name, values(), *settings)


@pytest.mark.parametrize(("name", "settings"), DECOMPOSED_GRADIENTS)
def test_decomposed_gradient_agrees_with_the_kernel(name: str, settings: tuple[Any, ...]) -> None:
    assert_agree(getattr(decompositions, name), name, values() * 0.5, values(), *settings)


@pytest.mark.parametrize("is_result", [False, True])
def test_decomposed_elu_gradient_agrees_with_the_kernel(is_result: bool) -> None:
    arguments = (values(), 0.5, 2.0, 1.5, is_result, values())
    assert_agree(decompositions.elu_backward, "elu_backward", *arguments)


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_decompositions_agree_with_the_kernels(dim: int) -> None:
    x, grad = values(), values() * 2
    assert_agree(decompositions.softmax_by_exp, "_softmax", x, dim, False)
    assert_agree(decompositions.log_softmax_by_exp, "_log_softmax", x, dim, False)
    for name, function in (
        ("_softmax_backward_data", decompositions.softmax_backward_by_sum),
        ("_log_softmax_backward_data", decompositions.log_softmax_backward_by_sum),
    ):
        assert_agree(function, name, grad, plugrad.softmax(x, dim), dim, plugrad.float64)


def test_error_function_matches_math() -> None:
    x = np.concatenate([np.linspace(-7, 7, 40001), [0.0, -0.0, math.inf, -math.inf, 1e-300]])
    expected = np.array([math.erf(value) for value in x])
    np.testing.assert_allclose(erf(x), expected, rtol=1e-15)
    np.testing.assert_allclose(erf(x.astype(np.float32)), expected, atol=4e-7)
    assert np.isnan(erf(np.array([math.nan]))).all()


@pytest.mark.parametrize("name", ["gelu", "silu", "elu", "softplus"])
def test_large_arrays_are_computed_in_blocks(name: str) -> None:
    x = plugrad.from_numpy(np.random.default_rng(0).uniform(-3, 3, (3, 20000)))
    function = getattr(plugrad, name)
    whole = function(x).numpy()
    np.testing.assert_array_equal(whole[1], function(x[1]).numpy())
    np.testing.assert_array_equal(whole, function(x.t()).numpy().T)
