"""A captured training step does what the same step does on the CPU, and leaves the same behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import plugrad
import plugrad_jax

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda parameters: plugrad.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: plugrad.optim.SGD(
        parameters, lr=0.1, momentum=0.9, weight_decay=0.01
    ),
    "adam": lambda parameters: plugrad.optim.Adam(parameters, lr=0.01),
    "adamw, amsgrad": lambda parameters: plugrad.optim.AdamW(parameters, lr=0.01, amsgrad=True),
    "nadam, capturable": lambda parameters: plugrad.optim.NAdam(
        parameters, lr=0.01, capturable=True, foreach=True
    ),
}
INPUTS = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
TARGETS = np.random.default_rng(1).standard_normal((6, 2)).astype(np.float32)


class Training:
    """A model, an optimizer and a step on one device."""

    def __init__(self, device: str, optimizer: str = "sgd") -> None:
        plugrad.manual_seed(0)
        self.model = plugrad.nn.Sequential(
            plugrad.nn.Linear(3, 4), plugrad.nn.Tanh(), plugrad.nn.Linear(4, 2)
        ).to(device)
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.inputs = plugrad.from_numpy(INPUTS).to(device)
        self.targets = plugrad.from_numpy(TARGETS).to(device)

    def step(self, inputs: Any, targets: Any) -> Any:
        self.optimizer.zero_grad()
        loss = ((self.model(inputs) - targets) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def losses(self, step: Callable[..., Any], count: int) -> list[float]:
        return [step(self.inputs, self.targets).item() for _ in range(count)]

    def everything(self) -> dict[str, Any]:
        found = {f"{name}": value for name, value in self.model.named_parameters()}
        found |= {f"{name}.grad": value.grad for name, value in self.model.named_parameters()}
        for number, state in self.optimizer.state_dict()["state"].items():
            found |= {f"{number}.{key}": value for key, value in state.items()}
        return {
            name: value.detach().cpu().numpy() if isinstance(value, plugrad.Tensor) else value
            for name, value in found.items()
        }


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_captured_step_trains_as_the_cpu_does(optimizer: str) -> None:
    host, device = Training("cpu", optimizer), Training("jax", optimizer)
    captured = plugrad_jax.jit(device.step)
    expected = host.losses(host.step, 5)
    np.testing.assert_allclose(device.losses(captured, 5), expected, rtol=1e-5)
    wanted, found = host.everything(), device.everything()
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_captured_and_eager_steps_can_be_mixed() -> None:
    host, device = Training("cpu", "adam"), Training("jax", "adam")
    captured = plugrad_jax.jit(device.step)
    expected = host.losses(host.step, 6)
    found = device.losses(captured, 3) + device.losses(device.step, 1) + device.losses(captured, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_learning_rate_is_an_input_of_the_program() -> None:
    host, device = Training("cpu", "adam"), Training("jax", "adam")
    captured = plugrad_jax.jit(device.step)
    rates = (0.01, 0.1, 0.003, 0.02)
    for rate in rates:
        for training, step in ((host, host.step), (device, captured)):
            training.optimizer.param_groups[0]["lr"] = rate
            training.losses(step, 1)
    np.testing.assert_allclose(device.losses(captured, 1), host.losses(host.step, 1), rtol=1e-5)
    assert captured.traces == 2  # before there is an optimizer's state, and after


def test_a_step_that_clears_its_gradients_is_traced_once() -> None:
    device = Training("jax", "sgd")

    @plugrad_jax.jit
    def step(inputs: Any, targets: Any) -> Any:
        loss = ((device.model(inputs) - targets) ** 2).mean()
        loss.backward()
        device.optimizer.step()
        device.optimizer.zero_grad()
        return loss

    device.losses(step, 3)
    assert step.traces == 1
    assert all(parameter.grad is None for parameter in device.model.parameters())


def memory(model: Any) -> list[int]:
    return [parameter.array.unsafe_buffer_pointer() for parameter in model.parameters()]


def test_arrays_of_parameters_are_written_over() -> None:
    device = Training("jax", "sgd")
    captured = plugrad_jax.jit(device.step)
    device.losses(captured, 2)
    before = memory(device.model)
    device.losses(captured, 1)
    assert memory(device.model) == before


def test_without_donation_former_arrays_stay() -> None:
    device = Training("jax", "sgd")
    captured = plugrad_jax.jit(device.step, donate=False)
    before = [parameter.array for parameter in device.model.parameters()]
    device.losses(captured, 2)
    assert not any(array.is_deleted() for array in before)


def test_what_a_user_holds_is_not_donated() -> None:
    device = Training("jax", "sgd")
    captured = plugrad_jax.jit(device.step)
    device.losses(captured, 2)
    weight = device.model[0].weight
    array, kept = weight.array, np.asarray(weight.array)
    values = kept.copy()
    detached, row = weight.detach(), weight.detach()[0]
    device.losses(captured, 2)
    np.testing.assert_array_equal(np.asarray(array), values)
    np.testing.assert_array_equal(kept, values)
    # These share the weight's elements, and follow what is written to it.
    assert plugrad.equal(detached, weight)
    assert plugrad.equal(row, weight[0])
    assert not plugrad.equal(row, plugrad.from_numpy(values[0]).to("jax"))


def test_a_step_that_a_library_made_is_a_step_like_any_other() -> None:
    from plugrad_nn.demo.digits import DigitsTask
    from plugrad_nn.demo.training import make_step

    layers = plugrad.nn.Flatten(), plugrad.nn.Linear(4, 3)
    model = plugrad.nn.Sequential(*layers).to("jax")
    optimizer = plugrad.optim.AdamW(model.parameters(), lr=0.1)
    step = plugrad_jax.jit(make_step(DigitsTask("mlp", 0), model, optimizer))
    images = plugrad.ones(2, 1, 2, 2, device="jax")
    labels = plugrad.tensor([0, 2], device="jax")
    losses = [float(step(images, labels)) for _ in range(3)]
    assert losses[2] < losses[0]
