"""Captured steps where JAX has several devices: each runs on the one that its tensors are on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import plugrad
import plugrad_jax

CaptureError = plugrad_jax.CaptureError


def ones(index: int, *sizes: int) -> Any:
    return plugrad.ones(*sizes or (2,), device=f"jax:{index}")


def index_of(tensor: Any) -> int:
    """Where the elements are, if the tensor says the same."""
    (place,) = plugrad_jax.to_jax(tensor).devices()
    assert tensor.device == plugrad.device(f"jax:{jax.devices().index(place)}")
    return int(tensor.device.index)


class Training:
    """A model with dropout and its optimizer on a device."""

    def __init__(self, device: str) -> None:
        plugrad.manual_seed(0)
        self.model = plugrad.nn.Sequential(plugrad.nn.Linear(2, 4), plugrad.nn.Dropout(0.5)).to(
            device
        )
        self.optimizer = plugrad.optim.Adam(self.model.parameters(), lr=0.1)

    def step(self, x: Any) -> Any:
        loss = (self.model(x) ** 2).sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def test_a_step_runs_where_its_model_is() -> None:
    eager, captured = Training("jax:1"), Training("jax:1")
    step = plugrad_jax.jit(captured.step)
    results = []
    for run in (eager.step, step):
        plugrad.manual_seed(1)
        results.append([run(ones(1, 3, 2)) for _ in range(3)])
    for expected, found in zip(*results, strict=True):
        assert index_of(found) == 1
        assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    for parameter in captured.model.parameters():
        assert index_of(parameter) == 1
        for name, value in captured.optimizer.state[parameter].items():
            # The count stays on the host, as in PyTorch.
            assert name == "step" or index_of(value) == 1
    assert step.traces == 2


def test_a_step_follows_its_state_to_another_device() -> None:
    layer = plugrad.nn.Linear(2, 1).to("jax:1")
    step = plugrad_jax.jit(lambda x: layer(x))
    expected = step(ones(1, 1, 2)).item()
    layer.to("jax:2")
    moved = step(ones(2, 1, 2))
    assert index_of(moved) == 2
    assert moved.item() == expected
    assert step.traces == 2


def test_random_numbers_are_those_of_the_device() -> None:
    def draw() -> Any:
        return plugrad.rand(2, device="jax:1")

    plugrad.manual_seed(2)
    expected = [draw().tolist() for _ in range(2)]
    plugrad.manual_seed(2)
    step = plugrad_jax.jit(draw)
    found = [step() for _ in range(2)]
    assert [index_of(each) for each in found] == [1, 1]
    assert [each.tolist() for each in found] == expected


def test_what_a_step_makes_may_be_on_its_device() -> None:
    step = plugrad_jax.jit(lambda x: x.to("jax:1") + plugrad.tensor([1.0, 2.0], device="jax:1"))
    for _ in range(2):
        found = step(ones(1))
        assert index_of(found) == 1
        assert found.tolist() == [2.0, 3.0]


def test_arrays_of_jax_are_on_the_devices_that_they_are_on() -> None:
    weight = ones(1)
    step = plugrad_jax.jit(lambda array: plugrad_jax.from_jax(array) * weight)
    found = step(jax.device_put(jnp.ones(2), jax.devices()[1]))
    assert index_of(found) == 1


def test_state_that_is_not_used_may_be_elsewhere() -> None:
    here, there = ones(1), ones(2)

    def step(x: Any) -> Any:
        return x * (here if x.ndim == 1 else there)

    assert index_of(plugrad_jax.jit(step)(ones(1))) == 1


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (lambda x, y: x + y, "tensor 1 of the arguments on jax:2"),
        (lambda x, y: (x * 2, y * 2), "tensor 1 of the arguments on jax:2"),
        (lambda x, y: x * 2 + y.sum(), "tensor 1 of the arguments on jax:2"),
        (lambda x, y: (x * 2).to("jax:2") + y, "what is made or moved there on jax:2"),
        (lambda x, y: (x * 2, plugrad.ones(2, device="jax:2")), "on jax:2"),
        (lambda x, y: (x * 2, plugrad.rand(2, device="jax:2")), "on jax:2"),
    ],
    ids=["mixed", "beside", "0-dim", "moved", "made", "random"],
)
def test_two_devices_in_one_step_are_named(step: Callable[..., Any], what: str) -> None:
    x, y = ones(1), ones(2)
    with pytest.raises(CaptureError, match="tensor 0 of the arguments is on jax:1, ") as raised:
        plugrad_jax.jit(step)(x, y)
    assert what in str(raised.value)
    assert "test_jit_devices.py:" in str(raised.value)


def test_arguments_elsewhere_than_the_state_are_named() -> None:
    training = Training("jax:1")
    step = plugrad_jax.jit(training.step)
    with pytest.raises(CaptureError, match=r"arguments is on jax:0, .*0\.weight on jax:1"):
        step(ones(0, 3, 2))
    assert not training.optimizer.state
    step(ones(1, 3, 2))


def test_a_move_in_a_function_that_jax_traces_is_refused() -> None:
    def move(array: Any) -> Any:
        return plugrad_jax.to_jax(plugrad_jax.from_jax(array).to("jax:1"))

    with pytest.raises(RuntimeError, match="moved to jax:1 in a function that JAX traces"):
        jax.jit(move)(jnp.ones(2))
