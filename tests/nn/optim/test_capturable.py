"""Captured steps of optimizers: the same as eager ones, and PyTorch's. Nothing is read on the host:
`plugrad.capture` refuses that."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import plugrad
from plugrad import Tensor, nn, optim

STEPS = 6
NAMES = ("ASGD", "Adadelta", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop")
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "decay": {"weight_decay": 0.1, "maximize": True},
    "amsgrad": {"amsgrad": True},
    "momentum": {"momentum": 0.9, "centered": True},
    "decoupled": {"weight_decay": 0.1, "decoupled_weight_decay": True},
    "averaged": {"t0": 2.0, "lambd": 0.01},
}
CASES = [
    (name, case)
    for name in NAMES
    for case, options in OPTIONS.items()
    if options.keys() <= inspect.signature(getattr(optim, name)).parameters.keys()
]


@pytest.fixture(autouse=True)
def _exact_counts() -> Iterator[None]:
    """Counts have the default dtype: powers of betas are exact to rounding."""
    plugrad.set_default_dtype(plugrad.float64)
    torch.set_default_dtype(torch.float64)
    yield
    plugrad.set_default_dtype(plugrad.float32)
    torch.set_default_dtype(torch.float32)


def weights(library: Any) -> list[Any]:
    return [
        library.nn.Parameter(library.tensor([[0.5, -0.35], [1.5, 0.65]])),
        library.nn.Parameter(library.tensor([0.1, -0.2])),
    ]


def training(
    library: Any, make: Callable[[list[Any]], Any]
) -> tuple[list[Any], Callable[[Any], None]]:
    """Parameters and a step of a small model."""
    parameters = weights(library)
    weight, bias = parameters
    optimizer = make(parameters)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        ((x @ weight + bias).tanh() ** 2).sum().backward()
        optimizer.step()

    return parameters, step


def batches(library: Any) -> list[Any]:
    return [library.tensor([[0.1 * n - 0.3, 0.2], [0.3, 0.4 - 0.1 * n]]) for n in range(STEPS)]


def captured(make: Callable[[list[Any]], Any]) -> list[Any]:
    """Parameters after some steps; all except the first are runs of one graph."""
    parameters, step = training(plugrad, make)
    first, *rest = batches(plugrad)
    step(first)  # the state exists afterwards
    graph = plugrad.capture(step, rest[0])
    for x in rest:
        graph(x)
    return [each.tolist() for each in parameters]


def eager(library: Any, make: Callable[[list[Any]], Any]) -> list[Any]:
    parameters, step = training(library, make)
    for x in batches(library):
        step(x)
    return [each.tolist() for each in parameters]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_captured_step_is_pytorchs(name: str, case: str) -> None:
    options = {"lr": 0.05, **OPTIONS[case]}
    found = captured(lambda p: getattr(optim, name)(p, capturable=True, **options))
    # PyTorch's own capturable=True is for devices only.
    expected = eager(torch, lambda p: getattr(torch.optim, name)(p, **options))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("foreach", [False, True])
def test_a_captured_step_is_the_eager_one(name: str, foreach: bool) -> None:
    def make(parameters: list[Any]) -> Any:
        return getattr(optim, name)(parameters, lr=0.05, capturable=True, foreach=foreach)

    assert captured(make) == eager(plugrad, make)


def test_rates_and_betas_that_are_tensors_are_read_when_the_graph_runs() -> None:
    def scheduled(run: Callable[[Any, list[Tensor]], Any]) -> list[Any]:
        rate = plugrad.tensor(0.05)
        betas = plugrad.tensor(0.9), plugrad.tensor(0.99)
        parameters, step = training(
            plugrad, lambda p: optim.Adam(p, lr=rate, betas=betas, capturable=True)
        )
        first, *rest = batches(plugrad)
        step(first)
        advance = run(step, rest)
        for x in rest:
            rate.mul_(0.5)
            advance(x)
        return [each.tolist() for each in parameters]

    assert scheduled(lambda step, rest: plugrad.capture(step, rest[0])) == scheduled(
        lambda step, rest: step
    )


def test_adagrad_without_decay_of_its_rate_needs_no_count() -> None:
    def make(parameters: list[Any]) -> Any:
        return optim.Adagrad(parameters, lr=0.05)

    assert captured(make) == eager(plugrad, make)


def test_without_capturable_the_error_names_the_line() -> None:
    _, step = training(plugrad, lambda p: optim.Adam(p, lr=0.05))
    x = batches(plugrad)[0]
    step(x)
    with pytest.raises(RuntimeError, match=r"optimizer\.step"):
        plugrad.capture(step, x)


def test_a_module_is_trained_by_a_graph() -> None:
    plugrad.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = optim.AdamW(model.parameters(), lr=0.05, capturable=True)
    x = plugrad.randn(32, 4)
    y = x @ plugrad.tensor([[1.0], [-2.0], [0.5], [0.0]])

    def step(x: Tensor, y: Tensor) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    before = step(x, y).item()
    graph = plugrad.capture(step, x, y)
    for _ in range(200):
        after = graph(x, y)
    assert after.item() < 1e-2 * before
