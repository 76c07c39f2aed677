"""Compiled steps do what the steps do, bit for bit. Oracle: the step as it is written."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from tests.core.transforms.compile.trained import check

nn = plugrad.nn
F = nn.functional


def training(model: Any, optimizer: Any, before: Any = None) -> tuple[Any, list[Any]]:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if before is not None:
            before()
        optimizer.step()
        return loss

    return step, [model, optimizer]


def batch(*shape: int) -> tuple[Any, Any]:
    plugrad.manual_seed(7)
    return plugrad.randn(*shape), plugrad.randint(0, 4, (shape[0],))


def mlp() -> Any:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 4))


def cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 4),
    )


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        mixed, _ = self.attention(x, x, x, need_weights=False)
        return self.head(F.gelu(self.norm(x + mixed)).mean(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6, batch_first=True)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


MODELS = {
    "mlp": (mlp, (5, 6)),
    "cnn": (cnn, (3, 1, 4, 4)),
    "attention": (Attending, (3, 4, 8)),
    "lstm": (Recurrent, (3, 4, 5)),
}


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("model", list(MODELS))
def test_a_compiled_step_trains_as_the_step_does(model: str, optimizer: str) -> None:
    made, shape = MODELS[model]

    def make() -> tuple[Any, list[Any]]:
        own = made()
        return training(own, getattr(plugrad.optim, optimizer)(own.parameters(), lr=0.01))

    check(make, *batch(*shape), steps=7)


@pytest.mark.parametrize(
    "options",
    [
        {"momentum": 0.9, "nesterov": True},
        {"weight_decay": 0.1},
        {"momentum": 0.9, "foreach": True},
        {"maximize": True},
    ],
    ids=str,
)
def test_options_of_an_optimizer(options: dict[str, Any]) -> None:
    def make() -> tuple[Any, list[Any]]:
        model = mlp()
        return training(model, plugrad.optim.SGD(model.parameters(), lr=0.1, **options))

    check(make, *batch(5, 6), steps=7)


def test_a_number_of_the_forward_may_be_what_the_optimizer_computes() -> None:
    """`lr * weight_decay` of AdamW is 1e-5 by default, and so is layer_norm's `eps`."""

    def make() -> Any:
        model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 2))
        return training(model, plugrad.optim.AdamW(model.parameters()))

    check(make, plugrad.randn(3, 4), plugrad.tensor([0, 1, 0]))


def test_a_learning_rate_that_a_schedule_changes_is_read_in_each_step() -> None:
    def make() -> tuple[Any, list[Any]]:
        model = mlp()
        optimizer = plugrad.optim.Adam(model.parameters(), lr=0.1)
        schedule = plugrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        inner, owners = training(model, optimizer)
        run = plugrad.compile(inner)

        def step(x: Any, y: Any) -> Any:
            loss = run(x, y).detach()
            schedule.step()
            return loss

        return step, owners

    def eager() -> tuple[Any, list[Any]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plugrad, "compile", lambda step: step)
            return make()

    x, y = batch(5, 6)
    plugrad.manual_seed(0)
    step, owners = make()
    found = [step(x, y).item() for _ in range(6)]
    plugrad.manual_seed(0)
    step, _ = eager()
    assert found == [step(x, y).item() for _ in range(6)]
    assert owners


def test_gradients_that_are_accumulated() -> None:
    def make() -> tuple[Any, list[Any]]:
        model = mlp()

        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        return step, [model]

    check(make, *batch(5, 6))


def test_clipped_gradients() -> None:
    def make() -> tuple[Any, list[Any]]:
        model = mlp()
        optimizer = plugrad.optim.SGD(model.parameters(), lr=0.1)
        return training(model, optimizer, lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.5))

    check(make, *batch(5, 6))


def test_autocast_within_the_step() -> None:
    def make() -> tuple[Any, list[Any]]:
        model = mlp()
        optimizer = plugrad.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, [model]

    check(make, *batch(5, 6))


def test_writes_to_views_and_their_bases() -> None:
    def make() -> tuple[Any, list[Any]]:
        state = plugrad.zeros(3, 4)
        row = state[1]

        def step(x: Any) -> Any:
            row.add_(x)
            state[:, 0].mul_(2)
            state.t()[2].copy_(state[0, :3] + 1)
            return state.sum(0), state.clone()

        return step, []

    check(make, plugrad.arange(4.0))


def test_writes_to_an_argument() -> None:
    x = plugrad.ones(3)
    step = plugrad.compile(lambda x: x.mul_(2))
    versions = []
    for _ in range(3):
        assert step(x) is x
        versions.append(x._version)
    assert x.tolist() == [8, 8, 8]
    assert versions == [1, 2, 3]
    assert step.cache_info().hits == 2


def test_no_grad_and_inference_mode() -> None:
    model = cnn().eval()
    x, _ = batch(3, 1, 4, 4)
    with plugrad.no_grad():
        run = plugrad.compile(lambda x: model(x))
        for _ in range(3):
            assert plugrad.equal(run(x), model(x))
        assert run.cache_info().hits == 2
    with plugrad.inference_mode():
        run = plugrad.compile(lambda x: model(x))
        for _ in range(3):
            assert run(x).is_inference()
        assert run.cache_info().hits == 2


def test_results_of_any_structure() -> None:
    def step(x: Any, scale: float, *, both: dict[str, Any]) -> Any:
        return {"a": x * scale, "b": [both["y"], (x + both["y"], 3)], "c": None}

    run: Any = plugrad.compile(step)
    x, y = plugrad.ones(2), plugrad.arange(2.0)
    for _ in range(3):
        found = run(x, 0.5, both={"y": y})
        assert found["b"][0] is y
        assert found["a"].tolist() == [0.5, 0.5]
        assert found["b"][1][0].tolist() == [1, 2]
        assert found["b"][1][1] == 3
        assert found["c"] is None
    assert run.cache_info().hits == 2


def test_a_method_is_compiled_for_each_instance() -> None:
    class Scaler:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @plugrad.compile
        def scaled(self, x: Any) -> Any:
            return x * self.factor

    two, three = Scaler(2.0), Scaler(3.0)
    for _ in range(3):
        assert two.scaled(plugrad.ones(1)).item() == 2
        assert three.scaled(plugrad.ones(1)).item() == 3


def test_integers_strided_inputs_and_empty_ones() -> None:
    def step(x: Any) -> Any:
        return (x + 1) * 2 - x, x.sum(), x.t()

    for x in (
        plugrad.arange(6).reshape(2, 3),
        plugrad.arange(12.0).reshape(3, 4).t(),
        plugrad.arange(12.0).reshape(3, 4)[:, ::2],
        plugrad.ones(1, 3).expand(2, 3),
        plugrad.zeros(0, 3),
    ):
        run: Any = plugrad.compile(lambda x: step(x)[:2])
        for _ in range(3):
            for a, b in zip(run(x), step(x), strict=False):
                assert plugrad.equal(a, b)
                assert a.stride() == b.stride()
        assert run.cache_info().hits == 2, run.explain()


def test_higher_derivatives_within_the_step() -> None:
    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (first,) = plugrad.autograd.grad((x**4).sum(), x, create_graph=True)
        (second,) = plugrad.autograd.grad(first.sum(), x)
        return second

    run: Any = plugrad.compile(step)
    for value in (1.0, 2.0, 3.0):
        assert run(plugrad.tensor([value])).item() == 12 * value**2
