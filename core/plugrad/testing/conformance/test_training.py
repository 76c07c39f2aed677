"""Training: a small network gets the same parameters as on the CPU."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import numpy as np

import plugrad
from plugrad.testing.conformance.kit.compare import assert_matches, on_host
from plugrad.testing.conformance.kit.matrix import each, on_devices
from plugrad.testing.conformance.kit.subject import Subject, by_own_kernels, skip

STEPS = 60


def data(subject: Subject) -> tuple[Any, Any]:
    """Points of the plane, and the product of their coordinates."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (32, 2))
    dtype = getattr(plugrad, subject.floating)
    x = plugrad.tensor(points, dtype=dtype)
    return x, x[:, :1] * x[:, 1:]


def by_hand(device: Any, x: Any, y: Any, parameters: list[Any]) -> tuple[list[float], list[Any]]:
    """Losses and parameters of gradient descent with momentum, written with operators alone."""
    x, y = x.to(device), y.to(device)
    leaves = [parameter.to(device).detach().clone().requires_grad_() for parameter in parameters]
    moments = [plugrad.zeros_like(leaf) for leaf in leaves]
    losses = []
    for _ in range(STEPS):
        w1, b1, w2 = leaves
        loss = ((((x @ w1) + b1).tanh() @ w2) - y).square().mean()
        grads = plugrad.autograd.grad(loss, leaves)
        with plugrad.no_grad():
            for leaf, moment, grad in zip(leaves, moments, grads, strict=True):
                moment *= 0.9
                moment += grad
                leaf -= 0.2 * moment
        losses.append(loss.item())
    return losses, [leaf.detach() for leaf in leaves]


@each("device", on_devices)
def test_by_hand(subject: Subject, device: Any) -> None:
    subject.needs("mm", "tanh", "square", "mean", "mul_.Scalar", "add_.Tensor", "sub_.Tensor")
    x, y = data(subject)
    rng = np.random.default_rng(1)
    shapes = ((2, 8), (8,), (8, 1))
    start = [plugrad.tensor(rng.normal(size=shape), dtype=x.dtype) for shape in shapes]
    losses, parameters = by_hand(device, x, y, start)
    with by_own_kernels():
        wanted_losses, wanted = by_hand("cpu", x, y, start)
    np.testing.assert_allclose(losses, wanted_losses, rtol=1e-3)
    assert losses[-1] < losses[0] / 3
    assert_matches(subject, parameters, wanted, slack=100)


def with_layers(device: Any, x: Any, y: Any, model: Any, optimizer: str) -> list[float]:
    """Losses of a model of plugrad.nn."""
    from plugrad import optim

    model = copy.deepcopy(model).to(device)
    x, y = x.to(device), y.to(device)
    chosen = getattr(optim, optimizer)(model.parameters(), lr=0.05)
    losses = []
    for _ in range(STEPS // 2):
        chosen.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        chosen.step()
        losses.append(loss.item())
    return losses


def test_with_layers_and_optimizers(subject: Subject) -> None:
    subject.needs("mm", "relu", "square", "mean", "addcdiv_", "lerp_.Scalar", "sqrt")
    if importlib.util.find_spec("plugrad_nn") is None:
        skip("plugrad-nn is not installed")
    from plugrad import nn

    x, y = data(subject)
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)).to(x.dtype)
    for optimizer in ("SGD", "Adam"):
        with by_own_kernels():
            expected = with_layers("cpu", x, y, model, optimizer)
        found = with_layers(subject.device, x, y, model, optimizer)
        np.testing.assert_allclose(found, expected, rtol=1e-3)
        assert found[-1] < found[0]


def test_the_gradient_accumulates(subject: Subject) -> None:
    x = subject.tensor([1.0, 2.0]).requires_grad_()
    for _ in range(3):
        (x * x).sum().backward()
    assert on_host(x.grad).tolist() == [6.0, 12.0]
