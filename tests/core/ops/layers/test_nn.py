"""Normalisation, convolution, pooling, embedding, dropout: the shared suite, and what it cannot
express: running statistics, randomness, gradients that are not derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad._generated.settings import LayerNorm
from plugrad.ops.composite import nn as decompositions
from plugrad.testing.cases import family_cases
from plugrad_cpu.kernels import convolution
from tests.core.ops.harness import OpSuite, needs_torch, torch


class TestNN(OpSuite):
    cases = family_cases("nn")


def random(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape)


def test_batch_norm_moves_running_statistics_by_the_momentum() -> None:
    x = random(4, 3, 2)
    mean, var = plugrad.zeros(3, dtype=plugrad.float64), plugrad.ones(3, dtype=plugrad.float64)
    plugrad.batch_norm(plugrad.from_numpy(x), None, None, mean, var, True, 0.25, 1e-5)
    np.testing.assert_allclose(mean.numpy(), 0.25 * x.mean((0, 2)))
    np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * x.var((0, 2), ddof=1))


def test_batch_norm_in_evaluation_leaves_running_statistics_alone() -> None:
    mean, var = plugrad.zeros(3), plugrad.ones(3)
    plugrad.batch_norm(plugrad.ones(2, 3), None, None, mean, var, False, 0.5, 1e-5)
    assert mean.tolist() == [0, 0, 0]
    assert var.tolist() == [1, 1, 1]


def test_batch_norm_of_float16_keeps_float32_statistics() -> None:
    mean, var = plugrad.zeros(3), plugrad.ones(3)
    x = plugrad.ones(2, 3, dtype=plugrad.float16) * 3
    out = plugrad.batch_norm(x, None, None, mean, var, True, 1.0, 1e-5)
    assert out.dtype is plugrad.float16
    assert mean.tolist() == [3, 3, 3]


def test_batch_norm_takes_a_vector_without_elements_only() -> None:
    empty = plugrad.ones(0, requires_grad=True)
    out = plugrad.batch_norm(empty, None, None, plugrad.ones(0), plugrad.ones(0), True, 0.5, 0.0)
    assert out.shape == (0,)
    assert out.requires_grad
    with pytest.raises(RuntimeError, match="running_mean should contain 0 elements not 3"):
        plugrad.batch_norm(empty, None, None, plugrad.ones(3), plugrad.ones(0), True, 0.5, 0.0)
    with pytest.raises(IndexError, match="got 1"):
        plugrad.batch_norm(plugrad.ones(3), None, None, None, None, True, 0.5, 0.0)


@pytest.mark.parametrize("dtype", [plugrad.int64, plugrad.uint8])
def test_native_dropout_backward_promotes_integers(dtype: plugrad.dtype) -> None:
    mask = plugrad.tensor([True, False])
    out = plugrad.native_dropout_backward(plugrad.tensor([3, 4], dtype=dtype), mask, 0.5)
    assert out.dtype is plugrad.float32
    assert out.tolist() == [1.5, 0.0]


@needs_torch
@pytest.mark.parametrize(("padding", "by_frequency"), [(2, False), (-1, True), (0, True)])
def test_embedding_gradient_matches_torch(padding: int, by_frequency: bool) -> None:
    grads = []
    for library in (plugrad, torch):
        weight = library.from_numpy(random(4, 3)).requires_grad_()
        indices = library.tensor([[0, 2, 2], [1, 2, 0]])
        out = library.embedding(weight, indices, padding, by_frequency)
        (out * library.from_numpy(random(2, 3, 3, seed=1))).sum().backward()
        grads.append(weight.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1])


def test_embedding_double_backward_skips_the_padding() -> None:
    weight = plugrad.ones(3, 2, requires_grad=True)
    grad_output = plugrad.ones(2, 2, requires_grad=True)
    out = plugrad.embedding(weight, plugrad.tensor([0, 2]), 2)
    (grad,) = plugrad.autograd.grad(out, weight, grad_output, create_graph=True)
    (found,) = plugrad.autograd.grad(grad.sum(), grad_output)
    assert found.tolist() == [[1, 1], [0, 0]]


class TestDropout:
    def test_keeps_about_one_minus_p_and_scales(self) -> None:
        plugrad.manual_seed(0)
        out = plugrad.dropout(plugrad.ones(10000), 0.2, True).numpy()
        assert set(np.unique(out).tolist()) == {0.0, 1.25}
        assert abs((out > 0).mean() - 0.8) < 0.02

    def test_gradient_uses_the_same_mask(self) -> None:
        x = plugrad.ones(100, requires_grad=True)
        out = plugrad.dropout(x, 0.5, True)
        out.sum().backward()
        assert x.grad.tolist() == out.tolist()

    def test_repeats_after_the_same_seed(self) -> None:
        runs = []
        for _ in range(2):
            plugrad.manual_seed(3)
            runs.append(plugrad.dropout(plugrad.ones(50), 0.5, True).tolist())
        assert runs[0] == runs[1]

    def test_is_the_identity_outside_training(self) -> None:
        x = plugrad.ones(3)
        assert plugrad.dropout(x, 0.5, False) is x
        assert plugrad.dropout(x, 0.0, True) is x

    def test_with_probability_one_drops_everything(self) -> None:
        x = plugrad.ones(3, requires_grad=True)
        out = plugrad.dropout(x, 1.0, True)
        out.sum().backward()
        assert out.tolist() == [0, 0, 0]
        assert x.grad.tolist() == [0, 0, 0]

    def test_rejects_a_probability_outside_zero_to_one(self) -> None:
        with pytest.raises(
            RuntimeError, match=r"dropout probability has to be between 0 and 1, but got 1.5"
        ):
            plugrad.dropout(plugrad.ones(3), 1.5, True)


@needs_torch
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_of_a_large_batch_goes_in_chunks(
    stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "_CHUNK", 400)
    results = []
    for library in (plugrad, torch):
        x = library.from_numpy(random(5, 2, 6, 6)).requires_grad_()
        w = library.from_numpy(random(3, 2, 3, 3)).requires_grad_()
        out = library.conv2d(x, w, None, stride, 1)
        (out * out).sum().backward()
        results.append([out.detach().numpy(), x.grad.numpy(), w.grad.numpy()])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs)


@needs_torch
def test_max_pool_sends_the_gradient_of_a_tie_to_the_first() -> None:
    for library in (plugrad, torch):
        x = library.ones(1, 4, 4, requires_grad=True)
        library.max_pool2d(x, 2).sum().backward()
        assert x.grad.tolist() == [[[1, 0, 1, 0], [0, 0, 0, 0]] * 2]


def test_layer_norm_decomposition_agrees_with_the_kernel() -> None:
    x, weight, bias = (plugrad.from_numpy(random(*s)) for s in ((4, 3), (3,), (3,)))
    by_kernel = plugrad.native_layer_norm(x, (3,), weight, bias, 1e-5)
    settings = LayerNorm((3,), weight, bias)
    by_mean = decompositions.native_layer_norm_by_mean(x, settings, 1e-5)
    for ours, theirs in zip(by_kernel, by_mean, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    mask = (True, True, True)
    grad, (_, mean, rstd) = bias.expand(4, 3), by_kernel
    backward = plugrad.native_layer_norm_backward(grad, x, (3,), mean, rstd, weight, bias, mask)
    by_mean = decompositions.native_layer_norm_backward_by_mean(grad, x, settings, mean, rstd, mask)
    for ours, theirs in zip(backward, by_mean, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


@needs_torch
def test_third_derivative_of_layer_norm_matches_torch_in_float64() -> None:
    found = []
    for library in (plugrad, torch):
        x = library.from_numpy(random(2, 3)).requires_grad_()
        # PyTorch's own double backward of layer_norm treats mean and deviation as constants.
        if library is torch:
            centered = x - x.mean(-1, keepdim=True)
            out = centered * ((centered * centered).mean(-1, keepdim=True) + 1e-5).rsqrt()
        else:
            out = library.layer_norm(x, (3,))
        for _ in range(3):
            (out,) = library.autograd.grad((out * out * out).sum(), x, create_graph=True)
        found.append(out.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"stride": [0]}, "non-positive stride"),
        ({"dilation": [0]}, "non-positive dilation"),
        ({"padding": [-1]}, "negative padding"),
        ({"groups": 0}, "non-positive groups"),
        ({"weight": plugrad.ones(3)}, "weight should have at least three dimensions"),
    ],
)
def test_the_backward_of_a_convolution_refuses_what_the_convolution_does(
    changed: dict[str, Any], words: str
) -> None:
    x = plugrad.ones(1, 1, 3)
    given: dict[str, Any] = {"weight": plugrad.ones(1, 1, 1), "stride": [1], "padding": [0]}
    given |= {"dilation": [1], "groups": 1}
    given |= changed
    with pytest.raises(RuntimeError, match=words):
        plugrad.ops.plugrad.convolution_backward(
            x, x, given["weight"], None, given["stride"], given["padding"], given["dilation"],
            False, [0], given["groups"], [True, True, False],
        )  # fmt: skip


@pytest.mark.parametrize(("channels", "kernel"), [(0, (1, 2)), (0, (0, 2)), (3, (0, 2))])
def test_convolution_over_nothing_is_the_bias(channels: int, kernel: tuple[int, int]) -> None:
    """Closed form: a sum without terms is 0. PyTorch's has no channels, or there is none."""
    x = plugrad.ones(2, channels, 3, 4, requires_grad=True)
    weight = plugrad.ones(2, channels, *kernel, requires_grad=True)
    bias = plugrad.tensor([0.5, 2.0], requires_grad=True)
    result = plugrad.conv2d(x, weight, bias)
    assert tuple(result.shape) == (2, 2, 4 - kernel[0], 3)
    assert result[0, :, 0, 0].tolist() == [0.5, 2.0]
    assert result.eq(bias.view(2, 1, 1)).all()
    result.sum().backward()
    for leaf in (x, weight):
        assert leaf.grad.shape == leaf.shape
        assert not leaf.grad.any()
    assert bias.grad.tolist() == [result[:, 0].numel()] * 2


def test_a_batch_without_elements_leaves_the_running_statistics_alone() -> None:
    mean, var = plugrad.tensor([1.0, 2.0]), plugrad.tensor([3.0, 4.0])
    weight = plugrad.ones(2, requires_grad=True)
    x = plugrad.zeros(0, 2, 3, requires_grad=True)
    out = plugrad.batch_norm(x, weight, None, mean, var, True, 0.5, 1e-5)
    out.sum().backward()
    assert (out.shape, mean.tolist(), var.tolist()) == ((0, 2, 3), [1.0, 2.0], [3.0, 4.0])
    assert weight.grad is not None
    assert weight.grad.tolist() == [0.0, 0.0]
