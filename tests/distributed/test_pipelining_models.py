"""Models that `pipeline` cuts: stages compute what the model computes, and train as it does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad import nn, optim
from plugrad.distributed.pipelining import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleavedZeroBubble,
    SplitPoint,
    pipe_split,
    pipeline,
)

ROWS = 4


class Model(nn.Module):
    """Two inputs and a number; the last part needs the second input, too."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 6)
        self.norm = nn.BatchNorm1d(6)
        self.second = nn.Linear(6, 6)
        self.last = nn.Linear(6, 2)

    def forward(self, x: Any, mask: Any, scale: float = 1.0) -> Any:
        hidden = plugrad.tanh(self.norm(self.first(x))) * mask
        pipe_split()
        with plugrad.no_grad():
            mean = hidden.mean()
        return self.last((self.second(hidden) + mean) * scale + hidden) * mask


def model() -> Any:
    plugrad.manual_seed(5)
    return Model()


def microbatch() -> tuple[Any, Any]:
    plugrad.manual_seed(6)
    return plugrad.randn(ROWS, 3), plugrad.tensor([[1.0], [0.5], [0.0], [2.0]])


def cut(whole: Any, **spec: SplitPoint) -> Any:
    return pipeline(whole, microbatch(), {"scale": 2.0}, split_spec=spec)


def names(pipe: Any) -> list[list[str]]:
    stages = [pipe.get_stage_module(number) for number in range(pipe.num_stages)]
    return [[name for name, _ in stage.named_parameters()] for stage in stages]


def test_stages_have_the_parameters_that_they_use() -> None:
    whole = model()
    pipe = cut(whole, last=SplitPoint.BEGINNING)
    assert names(pipe) == [
        ["first.weight", "first.bias", "norm.weight", "norm.bias"],
        ["second.weight", "second.bias"],
        ["last.weight", "last.bias"],
    ]
    assert pipe.get_stage_module(2).get_parameter("last.weight") is whole.last.weight
    buffers = [name for name, _ in pipe.get_stage_module(0).named_buffers()]
    assert sorted(buffers) == ["norm.num_batches_tracked", "norm.running_mean", "norm.running_var"]


def test_a_pipe_computes_what_the_model_computes() -> None:
    whole = model()
    other = copy.deepcopy(whole)
    pipe = cut(whole, last=SplitPoint.BEGINNING)
    for _ in range(2):
        found, wanted = (each(*microbatch(), scale=2.0) for each in (pipe, other))
        plugrad.testing.assert_close(found, wanted, rtol=0, atol=0)
        found.sum().backward()
        wanted.sum().backward()
    for one, two in zip(whole.parameters(), other.parameters(), strict=True):
        plugrad.testing.assert_close(one.grad, two.grad, rtol=0, atol=0)
    for one, two in zip(whole.buffers(), other.buffers(), strict=True):
        plugrad.testing.assert_close(one, two, rtol=0, atol=0)


def test_points_before_and_after_a_submodule() -> None:
    layers = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    x = plugrad.ones(2, 3)
    after = pipeline(layers, (x,), split_spec={"0": SplitPoint.END})
    before = pipeline(layers, (x,), split_spec={"2": SplitPoint.BEGINNING})
    assert [len(pipe.get_stage_module(0)._nodes) for pipe in (after, before)] == [1, 2]
    pipe_split()  # does nothing here
    assert pipeline(layers, (x,)).num_stages == 1


def test_results_may_be_containers() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            hidden = x * 2
            pipe_split()
            return {"y": self.layer(hidden), "x": x, "note": "text"}

    module, x = Pair(), plugrad.ones(1, 2)
    found = pipeline(module, (x,))(x)
    plugrad.testing.assert_close(found["y"], module.layer(2 * x))
    assert found["x"] is x
    assert found["note"] == "text"


def train(schedule: Any, ranks: int) -> Any:
    """Two steps of a model in three stages, on one rank or three."""
    whole = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 2))
    generator = plugrad.Generator().manual_seed(2)
    with plugrad.no_grad():
        for parameter in whole.parameters():
            parameter.copy_(plugrad.randn(parameter.shape, generator=generator))
    x = plugrad.randn(12, 3, generator=generator)
    target = plugrad.randn(12, 2, generator=generator)
    optimizer = optim.SGD(whole.parameters(), lr=0.1)
    if schedule is None:
        for _ in range(2):
            optimizer.zero_grad()
            nn.functional.mse_loss(whole(x), target).backward()
            optimizer.step()
        return list(whole.parameters())
    spec = {"1": SplitPoint.BEGINNING, "2": SplitPoint.END}
    pipe = pipeline(whole, (x[:ROWS],), split_spec=spec)
    rank = dist.get_rank()
    stage = pipe.build_stage(rank, "cpu")
    given = stage if schedule is not ScheduleInterleavedZeroBubble else [stage]
    made = schedule(given, 3, nn.functional.mse_loss)
    for _ in range(2):
        optimizer.zero_grad()
        made.step(*([x] if rank == 0 else []), **({"target": target} if rank == 2 else {}))
        optimizer.step()
    return list(stage.submod.parameters())


@pytest.mark.parametrize("schedule", [ScheduleGPipe, Schedule1F1B, ScheduleInterleavedZeroBubble])
def test_training_is_that_of_the_model(schedule: Any) -> None:
    found = [p for parameters in dist.run_ranks(train, 3, schedule, 3) for p in parameters]
    for one, two in zip(found, train(None, 1), strict=True):
        plugrad.testing.assert_close(one, two)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        hidden = self.layer(x)
        pipe_split()
        return self.layer(hidden)


class InPlace(nn.Module):
    def forward(self, x: Any) -> Any:
        hidden = x * 2
        pipe_split()
        return hidden.view(-1).add_(1) + 1


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "name": (lambda: cut(model(), third=SplitPoint.END), AttributeError, "names 'third', which is"),
    "point": (
        lambda: pipeline(model(), microbatch(), split_spec={"last": "end"}),  # type: ignore[dict-item]  # the mistake
        ValueError,
        r"split_spec\['last'\] must be SplitPoint.BEGINNING or",
    ),
    "empty": (
        lambda: cut(model(), first=SplitPoint.BEGINNING),
        ValueError,
        "stage 0 of 3 would have no operators",
    ),
    "policy": (
        lambda: pipeline(model(), microbatch(), split_policy=len),
        NotImplementedError,
        "split_policy is not supported",
    ),
    "tied": (
        lambda: pipeline(Tied(), (plugrad.ones(1, 2),)),
        ValueError,
        r"'layer.weight' is used",
    ),
    "in place": (
        lambda: pipeline(InPlace(), (plugrad.ones(1, 2),)),
        ValueError,
        "stage 1 writes to memory of a stage before",
    ),
    "shape": (
        lambda: cut(model())(plugrad.ones(1, 3), plugrad.ones(1, 1), scale=2.0),
        ValueError,
        r"made for microbatches with plugrad.float32 \[4, 3\], got plugrad.float32 \[1, 3\]",
    ),
    "arguments": (lambda: cut(model())(plugrad.ones(4, 3)), TypeError, "2 positional arguments"),
    "index": (lambda: cut(model()).get_stage_module(2), ValueError, "Invalid stage index 2!"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_cut_is_refused(case: str) -> None:
    function, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        function()
