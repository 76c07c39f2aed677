"""Optimizers: trajectories in float64 against PyTorch's, groups, state and errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn, optim

OPTIONS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05}),
    ("SGD", {"lr": 1e-3, "weight_decay": 0.05, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2, "amsgrad": True}),
]


def minimise(library: Any, optimizer: Any, parameters: list[Any], steps: int) -> None:
    """Some steps on a function with a valley; the second parameter has no gradient at first."""
    for step in range(steps):
        optimizer.zero_grad()
        loss = ((parameters[0] ** 2).sum() - 1) ** 2
        if step > 1:
            loss = loss + (parameters[1] - parameters[0].sum()).pow(4).sum()
        loss.backward()
        optimizer.step()


def start(library: Any) -> list[Any]:
    values = np.array([0.3, -0.7, 1.1]), np.array([[0.5, 0.1]])
    return [library.nn.Parameter(library.tensor(value)) for value in values]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_trajectory_agrees_with_torch(
    torch: Any, assert_equal_to_torch: Callable[..., None], name: str, options: dict[str, Any]
) -> None:
    results = []
    for library in (plugrad, torch):
        parameters = start(library)
        optimizer = getattr(library.optim, name)(parameters, **options)
        minimise(library, optimizer, parameters, 20)
        results.append(parameters)
    for actual, expected in zip(*results, strict=True):
        assert np.isfinite(actual.detach().numpy()).all()
        assert_equal_to_torch(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_resuming_from_a_state_dict_continues_the_trajectory(
    name: str, options: dict[str, Any]
) -> None:
    straight = start(plugrad)
    minimise(plugrad, getattr(optim, name)(straight, **options), straight, 8)

    resumed = start(plugrad)
    first = getattr(optim, name)(resumed, **options)
    minimise(plugrad, first, resumed, 4)
    second = getattr(optim, name)(resumed, lr=123.0)
    second.load_state_dict(first.state_dict())
    # Steps 5 to 8 have both gradients, as the straight run has.
    for _ in range(4):
        second.zero_grad()
        loss = ((resumed[0] ** 2).sum() - 1) ** 2
        loss = loss + (resumed[1] - resumed[0].sum()).pow(4).sum()
        loss.backward()
        second.step()
    for actual, expected in zip(resumed, straight, strict=True):
        np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


def test_loaded_state_is_a_copy() -> None:
    parameters = start(plugrad)
    source = optim.SGD(parameters, lr=0.1, momentum=0.9)
    minimise(plugrad, source, parameters, 1)
    target = optim.SGD(parameters, lr=0.1, momentum=0.9)
    target.load_state_dict(source.state_dict())
    source_buffer = source.state[parameters[0]]["momentum_buffer"]
    target_buffer = target.state[parameters[0]]["momentum_buffer"]
    assert source_buffer is not target_buffer
    assert source_buffer.tolist() == target_buffer.tolist()


def test_state_dict_numbers_parameters_in_order() -> None:
    a, b = start(plugrad)
    optimizer = optim.SGD([{"params": [b], "lr": 0.5}, {"params": [a]}], lr=0.1, momentum=0.9)
    a.grad = plugrad.ones_like(a)
    optimizer.step()
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert [group["lr"] for group in state["param_groups"]] == [0.5, 0.1]
    assert list(state["state"]) == [1]


def test_groups_use_their_own_options() -> None:
    a, b = nn.Parameter(plugrad.zeros(1)), nn.Parameter(plugrad.zeros(1))
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 10.0}], lr=1.0)
    a.grad, b.grad = plugrad.ones(1), plugrad.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (-1.0, -10.0)


def test_added_group_is_trained() -> None:
    a, b = nn.Parameter(plugrad.zeros(1)), nn.Parameter(plugrad.zeros(1))
    optimizer = optim.SGD([a], lr=1.0)
    optimizer.add_param_group({"params": b})
    b.grad = plugrad.ones(1)
    optimizer.step()
    assert b.item() == -1.0


def test_named_parameters_are_accepted() -> None:
    layer = nn.Linear(1, 1)
    optimizer = optim.SGD(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is layer.weight


def test_parameters_without_gradient_are_left_alone() -> None:
    parameter = nn.Parameter(plugrad.ones(1))
    optim.Adam([parameter]).step()
    assert parameter.item() == 1.0


def test_step_does_not_record_a_graph() -> None:
    parameter = nn.Parameter(plugrad.ones(1))
    parameter.grad = plugrad.ones(1)
    optim.Adam([parameter]).step()
    assert parameter.is_leaf
    assert parameter.requires_grad


def test_closure_is_evaluated_with_gradients_and_its_loss_returned() -> None:
    parameter = nn.Parameter(plugrad.tensor([2.0]))
    optimizer = optim.SGD([parameter], lr=0.25)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (parameter * parameter).sum()
        loss.backward()
        return loss

    with plugrad.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert parameter.item() == 1.0


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none: bool) -> None:
    parameter = nn.Parameter(plugrad.ones(1))
    parameter.grad = plugrad.ones(1)
    optim.SGD([parameter]).zero_grad(set_to_none)
    if set_to_none:
        assert parameter.grad is None
    else:
        assert parameter.grad.tolist() == [0.0]


def test_step_hooks_run_before_and_after() -> None:
    parameter = nn.Parameter(plugrad.zeros(1))
    parameter.grad = plugrad.ones(1)
    optimizer = optim.SGD([parameter], lr=1.0)
    seen: list[float] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(parameter.item()))
    optimizer.register_step_post_hook(lambda *_: seen.append(parameter.item()))
    optimizer.step()
    assert seen == [0.0, -1.0]


def test_repr_lists_the_options() -> None:
    text = repr(optim.SGD([nn.Parameter(plugrad.ones(1))], lr=0.5))
    assert text == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    lr: 0.5\n    maximize: False\n"
        "    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("SGD([p], lr=-1)", ValueError),
        ("SGD([p], momentum=-1)", ValueError),
        ("SGD([p], weight_decay=-1)", ValueError),
        ("SGD([p], nesterov=True)", ValueError),
        ("Adam([p], lr=-1)", ValueError),
        ("Adam([p], eps=-1)", ValueError),
        ("Adam([p], betas=(2, 0.5))", ValueError),
        ("AdamW([p], betas=(0.5, 1.0))", ValueError),
        ("SGD([])", ValueError),
        ("SGD([3])", TypeError),
        ("SGD([p * 2])", ValueError),
        ("SGD([{'params': [p]}, {'params': [p]}])", ValueError),
        ("SGD([{'params': {p}}])", TypeError),
        ("SGD([p]).add_param_group(3)", TypeError),
        (
            "SGD([p]).load_state_dict(Adam([{'params': [p]}, {'params': [q]}]).state_dict())",
            ValueError,
        ),
        ("SGD([p]).load_state_dict(SGD([p, q]).state_dict())", ValueError),
    ],
)
def test_wrong_use_raises_torchs_words(torch: Any, expression: str, error: type[Exception]) -> None:
    messages = []
    for library in (plugrad, torch):
        p, q = (library.nn.Parameter(library.ones(1)) for _ in range(2))
        names = {"SGD": library.optim.SGD, "Adam": library.optim.Adam, "p": p, "q": q}
        names["AdamW"] = library.optim.AdamW
        with pytest.raises(error) as caught:
            eval(expression, names)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("StepLR", {"step_size": 3, "gamma": 0.5}),
        ("ExponentialLR", {"gamma": 0.9}),
        ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
        ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}),
    ],
)
def test_schedules_agree_with_torch(torch: Any, name: str, options: dict[str, Any]) -> None:
    rates = []
    for library in (plugrad, torch):
        groups = [
            {"params": [p], "lr": lr} for p, lr in zip(start(library), (1.0, 0.3), strict=True)
        ]
        optimizer = library.optim.SGD(groups)
        schedule = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
        seen = [schedule.get_last_lr()]
        for _ in range(13):
            optimizer.step()
            schedule.step()
            seen.append([group["lr"] for group in optimizer.param_groups])
        rates.append(seen)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


def test_schedule_resumes_from_its_state_dict() -> None:
    def build() -> tuple[Any, Any]:
        optimizer = optim.SGD([nn.Parameter(plugrad.ones(1))], lr=1.0)
        return optimizer, optim.lr_scheduler.StepLR(optimizer, 2)

    optimizer, schedule = build()
    schedule.step()
    fresh_optimizer, fresh = build()
    fresh.load_state_dict(schedule.state_dict())
    fresh_optimizer.load_state_dict(optimizer.state_dict())
    fresh.step()
    assert fresh.get_last_lr() == [0.1]


def test_schedule_needs_an_optimizer() -> None:
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        optim.lr_scheduler.StepLR(3, 3)  # type: ignore[arg-type]  # the error under test
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        optim.lr_scheduler.LambdaLR(3, abs)  # type: ignore[arg-type]  # the error under test


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_switches_for_speed_change_nothing(name: str) -> None:
    results = []
    for options in ({}, {"foreach": True}, {"fused": True}, {"foreach": False, "fused": False}):
        parameters = start(plugrad)
        minimise(plugrad, getattr(optim, name)(parameters, **options), parameters, 3)
        results.append([parameter.tolist() for parameter in parameters])
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_signatures_are_torchs(torch: Any, name: str) -> None:
    def parameters(library: Any) -> dict[str, Any]:
        found = inspect.signature(getattr(library.optim, name)).parameters
        return {key: (one.kind, one.default) for key, one in found.items()}

    assert parameters(plugrad) == parameters(torch)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"fused": True, "foreach": True}, RuntimeError),
        ({"fused": True, "differentiable": True}, RuntimeError),
        ({"lr": [0.1, 0.2]}, ValueError),
    ],
)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_wrong_switches_raise_torchs_words(
    torch: Any, name: str, options: dict[str, Any], error: type[Exception]
) -> None:
    messages = []
    for library in (plugrad, torch):
        given = {k: library.tensor(v) if isinstance(v, list) else v for k, v in options.items()}
        with pytest.raises(error) as caught:
            getattr(library.optim, name)(start(library), **given)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_step_that_autograd_records_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="differentiable=True is not supported"):
        optim.SGD(start(plugrad), differentiable=True)


def test_the_learning_rate_may_be_a_tensor() -> None:
    weight = nn.Parameter(plugrad.ones(1))
    optimizer = optim.SGD([weight], lr=plugrad.tensor(0.5))
    weight.sum().backward()
    optimizer.step()
    assert weight.item() == 0.5


def test_an_option_is_a_real_number() -> None:
    with pytest.raises(TypeError, match=r"Tensor lr must be real, not plugrad\.complex64"):
        optim.Adam([plugrad.ones(1)], lr=plugrad.ones((), dtype=plugrad.complex64))
