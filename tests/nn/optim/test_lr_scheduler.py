"""Learning rate schedules and averaged weights: numbers, state dicts, warnings (torch)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import optim
from plugrad.optim import lr_scheduler


class Halving:
    """A function of the epoch that has state."""

    def __init__(self, factor: float = 0.5) -> None:
        self.factor = factor

    def __call__(self, epoch: int) -> float:
        return self.factor ** (epoch % 3)


def sequence(module: Any, optimizer: Any) -> dict[str, Any]:
    schedules = [
        module.ConstantLR(optimizer, 0.1, 2),
        module.CosineAnnealingLR(optimizer, 4),
        module.ExponentialLR(optimizer, 0.9),
    ]
    return {"schedulers": schedules, "milestones": [2, 7]}


# Names and options.
SCHEDULES: list[tuple[str, Any]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.25, "end_factor": 0.75, "total_iters": 4}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}),
    ("LambdaLR", {"lr_lambda": [Halving(), lambda epoch: 0.9]}),
    ("MultiplicativeLR", {"lr_lambda": Halving(0.8)}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": [1.0, 2.0], "step_size_up": 3, "step_size_down": 2}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "mode": "exp_range", "gamma": 0.9}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 2, "scale_fn": Halving()}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 14}),
    ("OneCycleLR", {"max_lr": [1.0, 2.0], "epochs": 7, "steps_per_epoch": 2, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 14, "anneal_strategy": "linear"}),
    ("SequentialLR", sequence),
    ("SWALR", {"swa_lr": [0.5, 0.05], "anneal_epochs": 5}),
    ("SWALR", {"swa_lr": 0.05, "anneal_epochs": 0, "anneal_strategy": "linear"}),
]


def make(library: Any, name: str, options: Any, kind: str = "SGD", lr: Any = 1.0) -> Any:
    groups = [{"params": [library.nn.Parameter(library.ones(1))], "lr": rate} for rate in (lr, 0.3)]
    extra = {"momentum": 0.5} if kind == "SGD" else {}
    optimizer = getattr(library.optim, kind)(groups, **extra)
    module = library.optim.swa_utils if name == "SWALR" else library.optim.lr_scheduler
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = options(module, optimizer) if callable(options) else options
        return optimizer, getattr(module, name)(optimizer, **given)


def follow(optimizer: Any, schedule: Any, steps: int) -> list[Any]:
    """The rates, and the momenta of groups, after each step."""
    seen = []
    for _ in range(steps):
        optimizer.step()
        with warnings.catch_warnings():
            # PyTorch's SequentialLR jumps.
            warnings.simplefilter("ignore")
            schedule.step()
        momenta = [group.get("momentum", group.get("betas")) for group in optimizer.param_groups]
        seen.append(([float(rate) for rate in schedule.get_last_lr()], momenta))
    return seen


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_rates_momenta_and_state_dicts_agree_with_torch(
    torch: Any, name: str, options: Any, kind: str
) -> None:
    found = []
    for library in (plugrad, torch):
        optimizer, schedule = make(library, name, options, kind)
        first = [float(rate) for rate in schedule.get_last_lr()]
        found.append((first, follow(optimizer, schedule, 13), schedule.state_dict()))
    (first, seen, state), (torchs_first, torchs_seen, torchs_state) = found
    assert first == torchs_first
    for (rates, momenta), (torchs_rates, torchs_momenta) in zip(seen, torchs_seen, strict=True):
        np.testing.assert_allclose(rates, torchs_rates, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(momenta, torchs_momenta, rtol=1e-12)
    assert state.keys() == torchs_state.keys()
    for inner, torchs in zip(
        state.get("_schedulers", ()), torchs_state.get("_schedulers", ()), strict=True
    ):
        assert inner.keys() == torchs.keys()


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_a_schedule_resumes_from_its_state_dict(name: str, options: Any) -> None:
    optimizer, schedule = make(plugrad, name, options)
    follow(optimizer, schedule, 4)
    fresh_optimizer, fresh = make(plugrad, name, options)
    saved = schedule.state_dict()
    keys = set(saved)
    fresh.load_state_dict(saved)
    assert set(saved) == keys
    fresh_optimizer.load_state_dict(optimizer.state_dict())
    assert follow(fresh_optimizer, fresh, 5) == follow(optimizer, schedule, 5)


@pytest.mark.parametrize(
    ("name", "options"), [case for case in SCHEDULES if case[0] not in ("SequentialLR", "SWALR")]
)
@pytest.mark.filterwarnings("ignore")
def test_jumps_use_closed_forms_as_in_torch(torch: Any, name: str, options: Any) -> None:
    rates = []
    for library in (plugrad, torch):
        _, schedule = make(library, name, options)
        seen = []
        for epoch in (3, 7, 2):
            schedule.step(epoch)
            seen.append(schedule.get_last_lr())
        rates.append(seen)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1, "cooldown": 1, "factor": 0.5},
        {"mode": "max", "patience": 0, "threshold": 0.5, "min_lr": [0.5, 0.1]},
        {"patience": 0, "threshold_mode": "abs", "threshold": 0.2, "min_lr": 0.05},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.2, "patience": 2},
    ],
)
def test_plateaus_lower_rates_as_in_torch(torch: Any, options: dict[str, Any]) -> None:
    rates = []
    for library in (plugrad, torch):
        _, schedule = make(library, "ReduceLROnPlateau", options)
        seen = []
        for metric in (3.0, 2.0, 2.1, 1.9, 1.9, 1.9, 2.5, 1.0, 1.0, 1.0, 1.0, 1.0):
            schedule.step(library.tensor(metric))
            seen.append(schedule.get_last_lr())
        rates.append((seen, sorted(schedule.state_dict())))
    assert rates[0] == rates[1]


def test_a_rate_that_is_a_tensor_stays_the_same_object() -> None:
    rate = plugrad.tensor(1.0)
    optimizer, schedule = make(plugrad, "ExponentialLR", {"gamma": 0.5}, lr=rate)
    follow(optimizer, schedule, 2)
    assert optimizer.param_groups[0]["lr"] is rate
    assert (rate.item(), schedule.get_last_lr()[0].item()) == (0.25, 0.25)


def test_chained_schedules_act_together(torch: Any) -> None:
    rates = []
    for library in (plugrad, torch):
        module = library.optim.lr_scheduler
        optimizer, first = make(library, "ConstantLR", {"factor": 0.1, "total_iters": 2})
        chain = module.ChainedScheduler([first, module.ExponentialLR(optimizer, 0.9)], optimizer)
        rates.append((follow(optimizer, chain, 4), sorted(chain.state_dict())))
    assert rates[0] == rates[1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("StepLR(3, 3)", TypeError),
        ("LambdaLR(optimizer, [abs])", ValueError),
        ("MultiplicativeLR(optimizer, 3)", TypeError),
        ("ConstantLR(optimizer, 2)", ValueError),
        ("LinearLR(optimizer, 0)", ValueError),
        ("LinearLR(optimizer, 1, 2)", ValueError),
        ("StepLR(optimizer, 3, last_epoch=4)", KeyError),
        ("CosineAnnealingWarmRestarts(optimizer, 0)", ValueError),
        ("CosineAnnealingWarmRestarts(optimizer, 1, 0)", ValueError),
        ("CosineAnnealingWarmRestarts(optimizer, 1).step(-1)", ValueError),
        ("CyclicLR(optimizer, [1, 2, 3], 1)", ValueError),
        ("CyclicLR(optimizer, 1, 2, mode='other')", ValueError),
        ("CyclicLR(without_momentum, 1, 2)", ValueError),
        ("OneCycleLR(optimizer, 1)", ValueError),
        ("OneCycleLR(optimizer, 1, 0)", ValueError),
        ("OneCycleLR(optimizer, 1, 5, pct_start=2)", ValueError),
        ("OneCycleLR(optimizer, 1, 5, anneal_strategy='other')", ValueError),
        ("OneCycleLR(optimizer, 1, 5).step(6)", ValueError),
        ("ReduceLROnPlateau(optimizer, factor=1)", ValueError),
        ("ReduceLROnPlateau(optimizer, mode='other')", ValueError),
        ("ReduceLROnPlateau(optimizer, min_lr=[1])", ValueError),
        ("SequentialLR(optimizer, [], [])", ValueError),
        ("SequentialLR(optimizer, [StepLR(optimizer, 1)], [3])", ValueError),
        ("SequentialLR(optimizer, [3], [])", TypeError),
        ("SequentialLR(optimizer, [ReduceLROnPlateau(optimizer)], [])", ValueError),
        ("ChainedScheduler([])", ValueError),
        ("SWALR(optimizer, 1, -1)", ValueError),
        ("get_ema_avg_fn(2)", ValueError),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_wrong_use_raises_torchs_words(torch: Any, call: str, error: type[Exception]) -> None:
    messages = []
    for library in (plugrad, torch):
        optimizer, _ = make(library, "StepLR", {"step_size": 1})
        for group in optimizer.param_groups:
            del group["initial_lr"]
        names = {**vars(library.optim.lr_scheduler), **vars(library.optim.swa_utils)}
        names |= {
            "optimizer": optimizer,
            "without_momentum": library.optim.Adagrad([library.nn.Parameter(library.ones(1))]),
        }
        with pytest.raises(error) as caught:
            eval(call, names)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda o, s: s.step(), r"lr_scheduler.step\(\)` before `optimizer.step"),
        (lambda o, s: (setattr(o, "step", lambda: None), s.step()), "has been overridden"),
        (lambda o, s: (o.step(), s.step(3)), "epoch parameter"),
        (lambda o, s: s.get_lr(), "please use `get_last_lr"),
    ],
)
def test_schedules_warn_in_torchs_words(torch: Any, act: Any, message: str) -> None:
    texts = []
    for library in (plugrad, torch):
        optimizer, schedule = make(library, "StepLR", {"step_size": 2})
        with pytest.warns(UserWarning, match=message) as caught:
            act(optimizer, schedule)
        texts.append([str(warning.message) for warning in caught])
    assert texts[0] == texts[1]


def average(library: Any, options: dict[str, Any]) -> Any:
    """What is in an averaged model after four updates, before and after `update_bn`."""
    utils = library.optim.swa_utils
    given = {
        key: getattr(utils, value)() if isinstance(value, str) else value
        for key, value in options.items()
    }
    model = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.BatchNorm1d(2))
    averaged = utils.AveragedModel(model, **given)
    for step in range(4):
        with library.no_grad():
            for number, parameter in enumerate(model.parameters()):
                parameter.copy_(library.ones_like(parameter) * (step * 3 + number) ** 2)
        model(library.tensor([[1.0, 2.0], [3.0, 5.0 * step]]))
        averaged.update_parameters(model)
    batches = [(library.tensor([[1.0, 2.0], [0.0, 5.0]]),), (library.ones(2, 2),)]
    before = {key: value.tolist() for key, value in averaged.state_dict().items()}
    utils.update_bn(batches, averaged)
    after = {key: value.tolist() for key, value in averaged.state_dict().items()}
    return before, after, averaged.module[1].momentum, averaged.training


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_buffers": True},
        {"avg_fn": "get_ema_avg_fn"},
        {"multi_avg_fn": "get_ema_multi_avg_fn"},
        {"multi_avg_fn": "get_swa_multi_avg_fn"},
    ],
)
def test_averaged_models_agree_with_torch(torch: Any, options: dict[str, Any]) -> None:
    ours, theirs = average(plugrad, options), average(torch, options)
    assert ours[2:] == theirs[2:]
    for actual, expected in zip(ours[:2], theirs[:2], strict=True):
        assert actual.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(actual[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


def test_every_public_name_of_torch_is_there(torch: Any) -> None:
    for ours, theirs in (
        (lr_scheduler, torch.optim.lr_scheduler),
        (optim.swa_utils, torch.optim.swa_utils),
    ):
        assert set(theirs.__all__) <= set(ours.__all__)
