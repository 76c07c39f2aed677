"""Steps on the CPU's tensors as programs of XLA: `plugrad.compile(step, backend="jax")`."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn, optim

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.05),
    "dampening": lambda p: optim.SGD(p, lr=0.1, momentum=0.8, dampening=0.25),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "uphill": lambda p: optim.SGD(p, lr=0.01, maximize=True),
    "adam": lambda p: optim.Adam(p, lr=0.02, weight_decay=0.07),
    "amsgrad": lambda p: optim.Adam(p, lr=0.02, amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, lr=0.02, weight_decay=0.3),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.02),
}


def trained(optimizer: Callable[[Any], Any], backend: str | None) -> tuple[list[Any], Any]:
    """The results of eight steps, the last ones with another rate; and the step."""
    plugrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.BatchNorm1d(12, momentum=0.3))
    model.append(nn.Linear(12, 3))
    made = optimizer(model.parameters())

    def step(x: Any, y: Any) -> Any:
        made.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        made.step()
        return loss

    run: Any = step if backend is None else plugrad.compile(step, backend=backend)
    x, y = plugrad.randn(5, 6), plugrad.tensor([0, 1, 2, 0, 1])
    losses = []
    for number in range(8):
        if number == 5:
            made.param_groups[0]["lr"] /= 3
        losses.append(run(x, y).detach().clone())
    grads = [parameter.grad.clone() for parameter in model.parameters()]
    state = [value.clone() for value in model.state_dict().values()]
    return [*losses, *grads, *state], run


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_that_of_the_step_as_it_is_written(name: str) -> None:
    expected, _ = trained(OPTIMIZERS[name], None)
    found, run = trained(OPTIMIZERS[name], "jax")
    for ours, theirs in zip(found, expected, strict=True):
        plugrad.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-5)
        assert ours.device.type == "cpu"
    if name != "rmsprop":  # its step consists of many operators with numbers
        assert run.cache_info().hits > 0, run.explain()


class Plain(optim.Optimizer):
    """Arithmetic with numbers, in place and not."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})

    @plugrad.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            rate = group["lr"]
            for parameter in group["params"]:
                parameter.mul_(1 - rate / 10)
                parameter.add_(parameter.grad, alpha=-rate)
                parameter.sub_(rate / 100).div_(1 + rate)
                parameter.copy_((parameter * rate + rate).add(parameter, alpha=rate) / rate - rate)


def test_numbers_that_change_go_into_arithmetic() -> None:
    expected, _ = trained(Plain, None)
    found, run = trained(Plain, "jax")
    for ours, theirs in zip(found, expected, strict=True):
        plugrad.testing.assert_close(ours, theirs, rtol=3e-3, atol=1e-3)
    assert run.cache_info().hits > 3, run.explain()


def test_results_and_gradients_have_memory_of_their_own() -> None:
    weight = plugrad.randn(200, 200, requires_grad=True)

    @plugrad.compile(backend="jax")
    def step(x: Any) -> Any:
        weight.grad = None
        y = x @ weight
        y.square().mean().backward()
        return y

    x = plugrad.randn(200, 200)
    first = [step(x) for _ in range(4)]
    assert step.cache_info().hits > 0, step.explain()
    expected = (x @ weight).detach()
    for y in first:
        plugrad.testing.assert_close(y.detach(), expected, rtol=1e-4, atol=1e-4)
    kept = first[-1].detach()
    kept += 1  # it may be written to
    assert weight.grad is not None
    weight.grad.zero_()
    del first, y
    gc.collect()
    again = step(x)
    plugrad.testing.assert_close(again.detach(), expected, rtol=1e-4, atol=1e-4)
    plugrad.testing.assert_close(kept, expected + 1, rtol=1e-4, atol=1e-4)
    assert again.numpy(force=True).flags.writeable


def test_views_and_writes() -> None:
    total = plugrad.zeros(3)

    def step(x: Any) -> Any:
        y = x.clone()
        y[:, 0] += 1
        y.T.mul_(2)
        total.add_(y.sum(0))
        return y.reshape(-1)[::2].clone()

    run = plugrad.compile(step, backend="jax")
    for _ in range(4):
        x = plugrad.randn(2, 3)
        before = total.clone()
        found, added = run(x), total - before
        total.copy_(before)
        expected = step(x)
        plugrad.testing.assert_close(found, expected)
        plugrad.testing.assert_close(added, total - before)
    assert run.cache_info().hits > 0, run.explain()


def test_what_xla_cannot_have_runs_as_it_is_written() -> None:
    def step(x: Any) -> Any:
        return nn.functional.dropout(x, 0.5) * 2

    run = plugrad.compile(step, backend="jax")
    plugrad.manual_seed(3)
    found = [run(plugrad.ones(20)) for _ in range(4)]
    plugrad.manual_seed(3)
    expected = [step(plugrad.ones(20)) for _ in range(4)]
    for ours, theirs in zip(found, expected, strict=True):
        assert plugrad.equal(ours, theirs)
    assert "draws random numbers" in run.explain()


def test_the_first_tensor_says_which_compiler_runs() -> None:
    @plugrad.compile(backend="jax")
    def step(batch: Any) -> Any:
        return batch["x"] * 2

    for device in ("cpu", "jax", "cpu"):
        for _ in range(3):
            found = step({"x": plugrad.ones(3, device=device)})
            assert found.device.type == device
            assert found.tolist() == [2, 2, 2]


def test_a_method_may_be_compiled() -> None:
    class Scaled:
        factor = 3.0

        @plugrad.compile(backend="jax")
        def times(self, x: Any) -> Any:
            return x * self.factor

    assert [Scaled().times(plugrad.ones(2)).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3


def test_dtypes() -> None:
    def step(a: Any, b: Any, c: Any) -> Any:
        return a + 1, b.exp(), (c > 0).any(), b.to(plugrad.bfloat16)

    run = plugrad.compile(step, backend="jax")
    for _ in range(4):
        args = (
            plugrad.arange(3),
            plugrad.randn(4, dtype=plugrad.float64),
            plugrad.tensor([True, False]),
        )
        for ours, theirs in zip(run(*args), step(*args), strict=True):
            assert ours.dtype == theirs.dtype
            plugrad.testing.assert_close(ours, theirs)
    assert run.cache_info().hits > 0, run.explain()


def test_memory_that_is_written_to_and_shared_is_refused() -> None:
    base = np.zeros(4, np.float32)
    one, other = plugrad.from_numpy(base), plugrad.from_numpy(base)

    def step(x: Any) -> Any:
        one.add_(x)
        return (other * 2).clone()

    run = plugrad.compile(step, backend="jax")
    run(plugrad.ones(4))  # is listened to
    with pytest.raises(RuntimeError, match='backend="tape"'):
        run(plugrad.ones(4))
