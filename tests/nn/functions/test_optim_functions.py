"""Optimizers as functions of lists: PyTorch's arguments, and PyTorch's numbers."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad_nn.optim import functional

# Options beside the learning rate.
OPTIONS: dict[str, dict[str, Any]] = {
    "adadelta": {"rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": False},
    "adagrad": {"weight_decay": 0.1, "lr_decay": 0.1, "eps": 1e-10, "maximize": True},
    "adam": {
        "amsgrad": True,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.1,
        "eps": 1e-8,
        "maximize": False,
        "decoupled_weight_decay": True,
    },
    "adamax": {"eps": 1e-8, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1},
    "adamw": {
        "amsgrad": False,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.1,
        "eps": 1e-8,
        "maximize": True,
    },
    "asgd": {"lambd": 1e-2, "t0": 2, "alpha": 0.75, "weight_decay": 0.1},
    "nadam": {
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.1,
        "momentum_decay": 4e-3,
        "eps": 1e-8,
    },
    "radam": {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8},
    "rmsprop": {
        "alpha": 0.9,
        "eps": 1e-8,
        "weight_decay": 0.1,
        "momentum": 0.5,
        "centered": True,
    },
    "rprop": {"step_size_min": 1e-6, "step_size_max": 5, "etaminus": 0.5, "etaplus": 1.2},
    "sgd": {
        "weight_decay": 0.1,
        "momentum": 0.9,
        "dampening": 0.1,
        "nesterov": False,
        "maximize": False,
    },
}
ONES = {"mu_products", "mus", "etas", "step_sizes"}


def of_torch(torch: Any, name: str) -> Any:
    return getattr(importlib.import_module(f"torch.optim.{name}"), name)


@pytest.mark.parametrize("name", functional.__all__)
def test_arguments_are_torchs(torch: Any, name: str) -> None:
    def arguments(function: Any) -> list[tuple[Any, ...]]:
        found = inspect.signature(function).parameters.values()
        return [(each.name, each.kind, each.default) for each in found]

    assert arguments(getattr(functional, name)) == arguments(of_torch(torch, name))


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", functional.__all__)
def test_five_steps_are_torchs(torch: Any, name: str, foreach: bool) -> None:
    results = []
    for library, step in ((plugrad, getattr(functional, name)), (torch, of_torch(torch, name))):
        rng = np.random.default_rng(2)
        params = [library.tensor(rng.standard_normal(shape)) for shape in ((3, 2), (4,))]
        lists: dict[str, list[Any]] = {}
        for argument in list(inspect.signature(of_torch(torch, name)).parameters)[2:]:
            if argument == "state_steps":
                lists[argument] = [library.tensor(0.0) for _ in params]
            elif argument == "momentum_buffer_list" and name == "sgd":
                lists[argument] = [None, None]
            elif argument.endswith("s") and argument not in ("eps", "etaminus", "etaplus"):
                fill = library.ones_like if argument in ONES else library.zeros_like
                lists[argument] = [fill(p) for p in params]
                if argument in ("mu_products", "mus", "etas"):
                    lists[argument] = [library.ones((), dtype=library.float64) for _ in params]
            elif argument == "momentum_buffer_list":
                lists[argument] = [library.zeros_like(p) for p in params]
        options = dict(OPTIONS[name])
        if name != "rprop":
            options["lr"] = 0.05
        for _ in range(5):
            grads = [library.tensor(rng.standard_normal(tuple(p.shape))) for p in params]
            step(params, grads, *lists.values(), foreach=foreach, **options)
        tensors = [*params, *(tensor for each in lists.values() for tensor in each)]
        results.append([tensor.numpy() for tensor in tensors if tensor is not None])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


def test_steps_are_tensors_and_scales_are_refused(torch: Any) -> None:
    p, g = plugrad.ones(2), plugrad.ones(2)
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of"):
        functional.adagrad([p], [g], [p], [1], lr=1, weight_decay=0, lr_decay=0, eps=0, maximize=0)
    with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
        functional.sgd(
            *([p], [g], [None]),
            grad_scale=p,
            **OPTIONS["sgd"],
            lr=1.0,
        )
    assert p.tolist() == [1.0, 1.0]


def stepped(library: Any, *, steps: int = 1) -> tuple[list[Any], Any]:
    parameters = [library.nn.Parameter(library.ones(size)) for size in (2, 3)]
    optimizer = library.optim.Adam(parameters, lr=0.1)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = library.ones_like(parameter)
        optimizer.step()
    return parameters, optimizer


def test_an_optimizer_works_on_other_parameters_for_a_while(torch: Any) -> None:
    found = []
    for library in (plugrad, torch):
        parameters, optimizer = stepped(library)
        state = copy.deepcopy(optimizer.state_dict())
        state["param_groups"][0]["lr"] = 1.0
        others = {"a": library.zeros(2), "b": library.zeros(3)}
        for other in others.values():
            other.grad = library.ones_like(other)
        swap = library.optim.swap_in_optimizer_params_and_state
        with contextlib.suppress(KeyError), swap(optimizer, others, state):
            optimizer.step()
            optimizer.param_groups[0]["lr"] = 7.0
            optimizer.state[others["a"]]["exp_avg"] = library.full((2,), 9.0)
            raise KeyError
        assert optimizer.param_groups[0]["params"] == parameters
        assert list(optimizer.state) == parameters
        rates = [group["lr"] for group in (optimizer.param_groups[0], state["param_groups"][0])]
        tensors = [*parameters, *others.values(), *state["state"][0].values()]
        found.append((rates, [tensor.detach().numpy() for tensor in tensors]))
    assert found[0][0] == found[1][0]
    for mine, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_what_does_not_fit_is_not_swapped_in(torch: Any) -> None:
    messages = []
    for library in (plugrad, torch):
        parameters, optimizer = stepped(library)
        _, unused = stepped(library, steps=0)
        full = {"a": library.zeros(2), "b": library.zeros(3)}
        state = optimizer.state_dict()
        wrong = (
            (unused, full, state),
            (optimizer, {"a": library.zeros(2)}, state),
            (optimizer, full, {"state": {}, "param_groups": []}),
            (optimizer, full, {}),
        )
        for given in wrong:
            with (
                pytest.raises(RuntimeError) as caught,
                library.optim.swap_in_optimizer_params_and_state(*given),
            ):
                pass
            messages.append(str(caught.value))
        assert optimizer.param_groups[0]["params"] == parameters
    assert messages[:4] == messages[4:]
