"""`GradScaler`: scaling, skipped steps, the scale's life, states and errors; PyTorch beside it."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import pytest

import plugrad
from tests.core.ops.harness import needs_torch, torch

INF = float("inf")


def optimizer_of(*parameters: Any) -> Any:
    return plugrad.optim.SGD(list(parameters), lr=0.5)


@pytest.fixture
def weight() -> Any:
    return plugrad.ones(2, requires_grad=True)


@pytest.fixture
def scaler() -> plugrad.amp.GradScaler:
    return plugrad.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)


def train(scaler: Any, weight: Any, optimizer: Any, factor: float = 1.0) -> None:
    optimizer.zero_grad()
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_gradients_are_scaled_and_unscaled(weight: Any, scaler: Any) -> None:
    optimizer = optimizer_of(weight)
    scaler.scale(weight.sum()).backward()
    assert weight.grad.tolist() == [8.0, 8.0]
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [1.0, 1.0]
    scaler.step(optimizer)
    assert weight.grad.tolist() == [1.0, 1.0]
    assert weight.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("factor", [INF, -INF, float("nan")])
def test_a_step_with_a_gradient_that_is_not_finite_is_skipped(
    weight: Any, scaler: Any, factor: float
) -> None:
    train(scaler, weight, optimizer_of(weight), factor)
    assert weight.tolist() == [1.0, 1.0]
    assert scaler.get_scale() == 4.0


def test_the_scale_grows_after_steps_in_a_row(weight: Any, scaler: Any) -> None:
    optimizer = optimizer_of(weight)
    scales = []
    for factor in (1.0, INF, 1.0, 1.0, 1.0):
        train(scaler, weight, optimizer, factor)
        scales.append(scaler.get_scale())
    assert scales == [8.0, 4.0, 4.0, 8.0, 8.0]


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_the_scale_stays_finite(weight: Any) -> None:
    scaler = plugrad.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    train(scaler, weight, optimizer_of(weight), 2.0**-127)
    assert scaler.get_scale() == 2.0**127


def test_one_wait_per_optimizer(weight: Any, scaler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = plugrad.ones(3, requires_grad=True)
    waits: list[Any] = []
    item = plugrad.Tensor.item
    monkeypatch.setattr(plugrad.Tensor, "item", lambda self: (waits.append(self), item(self))[1])
    optimizer = optimizer_of(weight, other)
    scaler.scale(weight.sum() + other.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert len(waits) == 1


def test_outputs_may_be_nested(weight: Any, scaler: Any) -> None:
    total = weight.sum()
    pair, (last,) = scaler.scale([total, (total,)])
    assert pair.item() == last.item() == 16.0
    assert [x.item() for x in scaler.scale(x for x in (total, total))] == [16.0, 16.0]


def test_each_optimizer_has_its_own_checks(weight: Any, scaler: Any) -> None:
    other = plugrad.ones(2, requires_grad=True)
    first, second = optimizer_of(weight), optimizer_of(other)
    scaler.scale(weight.sum() + (other * INF).sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert weight.tolist() == [0.5, 0.5]
    assert other.tolist() == [1.0, 1.0]
    assert scaler.get_scale() == 4.0


def test_the_scale_can_be_set(weight: Any, scaler: Any) -> None:
    scaler.scale(weight.sum())
    scaler.update(2.0)
    assert scaler.get_scale() == 2.0
    scaler.update(plugrad.full((1,), 16.0))
    assert scaler.get_scale() == 16.0


def test_states_go_from_one_to_another(weight: Any, scaler: Any) -> None:
    optimizer = optimizer_of(weight)
    train(scaler, weight, optimizer)
    state = scaler.state_dict()
    assert state == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2,
        "_growth_tracker": 1,
    }  # fmt: skip
    other = plugrad.amp.GradScaler("cpu")
    other.load_state_dict(state)
    train(other, weight, optimizer)
    assert other.get_scale() == 16.0
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert pickle.loads(pickle.dumps(other)).state_dict() == state


def test_a_disabled_one_only_steps(weight: Any) -> None:
    scaler = plugrad.amp.GradScaler("cpu", enabled=False)
    optimizer = optimizer_of(weight)
    train(scaler, weight, optimizer)
    scaler.unscale_(optimizer)
    scaler.load_state_dict({})
    assert weight.tolist() == [0.5, 0.5]
    assert (scaler.is_enabled(), scaler.get_scale(), scaler.state_dict()) == (False, 1.0, {})


def test_setters_are_heard(scaler: Any) -> None:
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert scaler.get_growth_factor() == 3.0
    assert scaler.get_backoff_factor() == 0.25
    assert scaler.get_growth_interval() == 7


def _mistakes(library: Any) -> list[str]:
    """What is said to one call after the other, most of them out of order."""
    said: list[str] = []
    p = library.ones(3, requires_grad=True)
    idle = library.optim.SGD([library.ones(3, requires_grad=True)], lr=0.1)
    half = library.ones(3, requires_grad=True, dtype=library.float16)
    half.grad = library.ones(3, dtype=library.float16)
    narrow = library.optim.SGD([half], lr=0.1)
    optimizer = library.optim.SGD([p], lr=0.1)
    scaler = library.amp.GradScaler("cpu", init_scale=4.0)
    calls = [
        lambda: scaler.unscale_(optimizer),
        lambda: scaler.step(optimizer),
        lambda: scaler.update(),
        lambda: scaler.scale(3),
        lambda: scaler.scale(p.sum()).backward(),
        lambda: scaler.update(),
        lambda: scaler.step(optimizer, closure=1),
        lambda: scaler.unscale_(optimizer),
        lambda: scaler.unscale_(optimizer),
        lambda: pickle.dumps(scaler),
        lambda: scaler.step(optimizer),
        lambda: scaler.step(optimizer),
        lambda: scaler.unscale_(optimizer),
        lambda: scaler.update(),
        lambda: scaler.state_dict(),
        lambda: scaler.load_state_dict({}),
        lambda: scaler.update(library.ones(2)),
        lambda: scaler.update(library.ones(1, requires_grad=True)),
        lambda: scaler.step(idle),
        lambda: scaler.unscale_(narrow),
        lambda: half.grad.tolist(),
        lambda: p.grad.tolist(),
    ]
    for call in calls:
        try:
            said.append(str(call()))
        except (RuntimeError, ValueError, AssertionError, TypeError) as error:
            said.append(f"{type(error).__name__}: {error}".replace("torch", "plugrad"))
    return said


@needs_torch
def test_errors_are_those_of_pytorch() -> None:
    assert _mistakes(plugrad) == _mistakes(torch)


def test_its_default_is_cuda_without_which_it_is_disabled_with_a_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaler = plugrad.amp.GradScaler()
    available = plugrad.cuda.is_available()
    assert scaler.is_enabled() == available
    assert available or "CUDA is not available.  Disabling." in str(caught[0].message)
