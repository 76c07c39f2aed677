"""Pipelines: gradients and results equal the model's on one process; the ranks' orders are
consistent."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plugrad
from plugrad import distributed as dist
from plugrad import nn, optim
from plugrad.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    TensorChunkSpec,
    merge_chunks,
    orders,
    split_args_kwargs_into_chunks,
)
from plugrad_distributed.distributed.pipelining.splitting import SplitBackward
from tests.core.drawing import drawn

float64 = plugrad.float64
SINGLE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
MULTI = {
    "bfs": ScheduleLoopedBFS,
    "interleaved": ScheduleInterleaved1F1B,
    "zero bubble": ScheduleInterleavedZeroBubble,
    "zero bubble, V": ScheduleZBVZeroBubble,
}


def layers(count: int) -> list[Any]:
    """The stages of a model, the same whenever they are made."""
    found = []
    for number in range(count):
        layer = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
        with plugrad.no_grad():
            for place, parameter in enumerate(layer.parameters()):
                steps = plugrad.arange(parameter.numel(), dtype=float64).reshape(parameter.shape)
                parameter.copy_((steps + number + place).sin() * 0.5)
        found.append(layer)
    return found


def batch() -> tuple[Any, Any]:
    x = (plugrad.arange(36, dtype=float64) * 0.7).cos().reshape(12, 3)
    return x, x.flip(0)


def alone(count: int, steps: int = 1) -> tuple[list[Any], list[Any], Any]:
    """Gradients of the last step, parameters and results, on one process."""
    model = nn.Sequential(*layers(count))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, target = batch()
    for _ in range(steps):
        optimizer.zero_grad()
        result = model(x)
        nn.functional.mse_loss(result, target).backward()
        optimizer.step()
    parameters = list(model.parameters())
    return [p.grad for p in parameters], parameters, result


def schedule_of(name: str, stages: int, microbatches: int) -> tuple[Any, list[Any]]:
    """The schedule of this rank, and the modules of its stages."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = stages_of(name, rank, size, stages)
    modules = [layers(stages)[number] for number in own]
    parts = [
        PipelineStage(module, number, stages, "cpu")
        for module, number in zip(modules, own, strict=True)
    ]
    loss = nn.functional.mse_loss
    if name in SINGLE:
        return SINGLE[name](parts[0], microbatches, loss), modules
    return MULTI[name](parts, microbatches, loss), modules


def stages_of(name: str, rank: int, ranks: int, stages: int) -> list[int]:
    if name == "zero bubble, V":
        return [rank, stages - 1 - rank]
    return list(range(rank, stages, ranks))


def train(name: str, stages: int, microbatches: int, steps: int) -> Any:
    schedule, modules = schedule_of(name, stages, microbatches)
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = optim.SGD(parameters, lr=0.1, momentum=0.9)
    x, target = batch()
    rank, size = dist.get_rank(), dist.get_world_size()
    losses: list[Any] = []
    result = None
    ends = stages - 1 in stages_of(name, rank, size, stages)
    for _ in range(steps):
        optimizer.zero_grad()
        given: dict[str, Any] = {}
        if ends:
            given = {"target": target, "losses": losses}
        result = schedule.step(*([x] if rank == 0 else []), **given)
        optimizer.step()
    return [[p.grad for p in m.parameters()] for m in modules], parameters, result, losses


CASES = [
    *itertools.product(SINGLE, [1, 2, 3], [1], [1, 2, 4, 5]),
    *itertools.product(["bfs", "interleaved", "zero bubble"], [1, 2], [2, 3], [2, 4, 6]),
    *itertools.product(["zero bubble"], [3], [1], [3, 6]),
    *itertools.product(["zero bubble, V"], [1, 2, 3], [2], [1, 4, 5, 12]),
]


@pytest.mark.parametrize(("name", "ranks", "each", "microbatches"), CASES)
def test_training_is_that_of_one_process(
    name: str, ranks: int, each: int, microbatches: int
) -> None:
    stages = ranks * each
    found = dist.run_ranks(train, ranks, name, stages, microbatches, 2)
    grads, _, result = alone(stages, 2)
    # Parts of a batch of 12 are not all of one size for 5: a mean of means is another number.
    exact = 12 % microbatches == 0
    if exact:
        got = [None] * stages
        for rank, (of_modules, *_) in enumerate(found):
            for stage, of_module in zip(
                stages_of(name, rank, ranks, stages), of_modules, strict=True
            ):
                got[stage] = of_module
        flat = [grad for of_module in got for grad in of_module or ()]
        for one, two in zip(flat, grads, strict=True):
            plugrad.testing.assert_close(one, two)
    (_, _, output, losses) = found.pop(0 if name == "zero bubble, V" else -1)
    assert all(other[2] is None for other in found)
    assert len(losses) == microbatches
    if exact:
        plugrad.testing.assert_close(output, result)
        mean = sum(loss.item() for loss in losses) / microbatches
        assert mean == pytest.approx(nn.functional.mse_loss(result, batch()[1]).item())


@pytest.mark.parametrize("name", [*SINGLE, *MULTI])
def test_eval_runs_forward_only(name: str) -> None:
    stages = 2 if name in SINGLE else 4

    def program() -> Any:
        schedule, modules = schedule_of(name, stages, 3)
        result = schedule.eval(*([batch()[0]] if dist.get_rank() == 0 else []))
        assert all(p.grad is None for module in modules for p in module.parameters())
        return result

    first, last = sorted(dist.run_ranks(program, 2), key=lambda each: each is not None)
    assert first is None
    assert not last.requires_grad
    plugrad.testing.assert_close(last, nn.Sequential(*layers(stages))(batch()[0]))


def test_batches_may_change_their_size() -> None:
    def program() -> Any:
        schedule, _ = schedule_of("1f1b", 2, 2)
        x, target = batch()
        found = []
        for size in (12, 4, 4, 8):
            if dist.get_rank() == 0:
                schedule.step(x[:size])
            else:
                found.append(schedule.step(target=target[:size]))
        return found

    _, found = dist.run_ranks(program, 2)
    model = nn.Sequential(*layers(2))
    for size, result in zip((12, 4, 4, 8), found, strict=True):
        plugrad.testing.assert_close(result, model(batch()[0][:size]))


def test_stages_pass_several_tensors_of_which_some_have_no_gradient() -> None:
    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(plugrad.ones(3, dtype=float64))

        def forward(self, x: Any, *, factor: float) -> Any:
            return x * self.weight * factor, (x > 0).sum(1), x.detach()

    class Second(nn.Module):
        def forward(self, a: Any, count: Any, plain: Any) -> Any:
            assert count.dtype == plugrad.int64
            assert not plain.requires_grad
            return a * count.unsqueeze(1) + plain

    def program() -> Any:
        rank = dist.get_rank()
        module = (First, Second)[rank]()
        stage = PipelineStage(module, rank, 2, "cpu")
        schedule = Schedule1F1B(stage, 2, lambda y, t: (y * t).sum(), scale_grads=False)
        x, target = batch()
        if rank == 0:
            schedule.step(x, factor=2.0)
            return module.weight.grad
        return schedule.step(target=target)

    grad, result = dist.run_ranks(program, 2)
    x, target = batch()
    weight = plugrad.ones(3, dtype=float64, requires_grad=True)
    wanted = x * weight * 2 * (x > 0).sum(1, keepdim=True) + x
    (wanted * target).sum().backward()
    plugrad.testing.assert_close(result, wanted)
    plugrad.testing.assert_close(grad, weight.grad)


def test_1f1b_keeps_few_microbatches() -> None:
    """Stage s of n keeps n - s at most; GPipe keeps all."""

    def program(name: str) -> int:
        schedule, _ = schedule_of(name, 3, 8)
        (stage,) = schedule._stages.values()
        most = 0
        real = stage.backward_one_chunk

        def backward(*args: Any) -> None:
            nonlocal most
            most = max(most, len(stage._kept))
            real(*args)

        stage.backward_one_chunk = backward
        x, target = batch()
        x = plugrad.cat([x, x])
        if dist.get_rank() == 0:
            schedule.step(x)
        else:
            schedule.step(target=plugrad.cat([target, target]))
        return most

    assert dist.run_ranks(program, 3, "1f1b") == [3, 2, 1]
    assert dist.run_ranks(program, 3, "gpipe") == [8, 8, 8]


def run_through(lists: list[list[Any]], stages: int) -> int:
    """Let ranks run their lists, each action when its inputs are available; returns the number of
    turns.

    Fails if no rank can continue.
    """
    done: set[Any] = set()
    left = [list(actions) for actions in lists]
    turns = 0
    while any(left):
        turns += 1
        ready = []
        for actions in left:
            if not actions:
                continue
            kind, stage, number = actions[0]
            if kind == "F":
                needs = {("F", stage - 1, number)} if stage else set()
            elif kind == "W":
                needs = {("I", stage, number)}
            else:
                needs = {("F", stage, number)}
                if stage < stages - 1:
                    needs.add((kind, stage + 1, number))
            if needs <= done:
                ready.append(actions)
        assert ready, f"nobody can go on: {[str(a[0]) for a in left if a]}"
        done.update(tuple(actions.pop(0)) for actions in ready)
    return turns


@drawn(200)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5), st.integers(1, 12))
def test_orders_come_to_their_end(ranks: int, each: int, rounds: int, count: int) -> None:
    stages = ranks * each
    everything = {(kind, s, n) for kind in "FB" for s in range(stages) for n in range(count)}
    lists = {
        "bfs": [orders.looped_bfs(rank, ranks, stages, count) for rank in range(ranks)],
    }
    if each == 1:
        lists["gpipe"] = [orders.gpipe(rank, count) for rank in range(ranks)]
        lists["1f1b"] = [orders.one_f_one_b(rank, stages, count) for rank in range(ranks)]
    for of_ranks in lists.values():
        run_through(of_ranks, stages)
        assert {tuple(action) for actions in of_ranks for action in actions} == everything
    count = rounds * ranks
    interleaved = [orders.interleaved_1f1b(rank, ranks, stages, count) for rank in range(ranks)]
    turns = run_through(interleaved, stages)
    # Work of 2 n v turns, and a pipeline that fills and empties once: Narayanan et al., 2021.
    assert turns == 2 * count * each + 2 * (ranks - 1)


class Shared(nn.Module):
    """A weight that several operators use, and one of them twice; a branch without inputs; an
    unused parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(plugrad.tensor([[0.5, -1.0], [1.5, 0.25]], dtype=float64))
        self.factor = nn.Parameter(plugrad.tensor([2.0, -0.5], dtype=float64))
        self.unused = nn.Parameter(plugrad.ones(1, dtype=float64))

    def forward(self, x: Any, y: Any) -> Any:
        hidden = plugrad.tanh(x @ self.weight) @ (self.weight * 2).t()
        return plugrad.addcmul(hidden, self.factor, self.factor) * y, self.factor.exp()


def shared_inputs() -> list[Any]:
    rows = plugrad.tensor([[1.0, 2.0], [-0.5, 0.3], [0.7, -1.0]], dtype=float64)
    return [rows.clone().requires_grad_(), rows.flip(0).clone().requires_grad_()]


def test_two_parts_of_backward_make_what_one_makes() -> None:
    model = Shared()
    grads = [plugrad.full((3, 2), 0.5, dtype=float64), plugrad.ones(2, dtype=float64)]
    inputs = shared_inputs()
    plugrad.autograd.backward(list(model(*inputs)), grads)
    wanted = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    fresh = shared_inputs()
    split = SplitBackward(list(model(*fresh)), grads, fresh)
    for found, before in zip(split.input_grads(), inputs, strict=True):
        plugrad.testing.assert_close(found, before.grad)
    assert all(parameter.grad is None for parameter in model.parameters())
    split.parameter_grads()
    for parameter, expected in zip(model.parameters(), wanted, strict=True):
        if expected is None:
            assert parameter.grad is None
        else:
            plugrad.testing.assert_close(parameter.grad, expected)


def test_hooks_within_a_stage_count_once() -> None:
    layer = nn.Linear(2, 2, bias=False)
    x = plugrad.ones(1, 2, requires_grad=True)
    y = layer(x)
    y.register_hook(lambda grad: 2 * grad)
    split = SplitBackward([y.sum()], [None], [x])
    (grad,) = split.input_grads()
    split.parameter_grads()
    plugrad.testing.assert_close(grad, 2 * layer.weight.sum(0, keepdim=True))
    assert layer.weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_inputs_without_a_way_have_no_gradient() -> None:
    x = plugrad.ones(2, requires_grad=True)
    weight = plugrad.ones(2, requires_grad=True)
    split = SplitBackward([(weight * 3).sum()], [None], [x])
    assert split.input_grads() == [None]
    split.parameter_grads()
    assert weight.grad.tolist() == [3.0, 3.0]
    assert SplitBackward([], [], [x]).input_grads() == [None]


def test_the_first_part_computes_no_gradient_of_a_weight() -> None:
    layer = nn.Linear(2, 3)
    x = plugrad.ones(4, 2, requires_grad=True)
    handle = layer.weight.register_hook(lambda grad: pytest.fail("a gradient of the weight"))
    split = SplitBackward([layer(x).sum()], [None], [x])
    split.input_grads()
    handle.remove()


@pytest.mark.parametrize("name", [*SINGLE, *MULTI])
def test_data_parallel_stages_average_once(name: str) -> None:
    """Two pipelines of two ranks have a half of the batch each."""
    stages = 2 if name in SINGLE else 4

    def program() -> Any:
        rank = dist.get_rank()
        pipes = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        replicas = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        place, pipe = rank % 2, pipes[rank // 2]
        own = stages_of(name, place, 2, stages)[: stages // 2]
        modules = [layers(stages)[number] for number in own]
        wrapped = [
            nn.parallel.DistributedDataParallel(module, process_group=replicas[place])
            for module in modules
        ]
        parts = [
            PipelineStage(module, number, stages, "cpu", group=pipe)
            for module, number in zip(wrapped, own, strict=True)
        ]
        loss = nn.functional.mse_loss
        made = SINGLE[name](parts[0], 2, loss) if name in SINGLE else MULTI[name](parts, 2, loss)
        x, target = batch()
        half = slice(0, 6) if rank < 2 else slice(6, 12)
        given = {"target": target[half]} if stages - 1 in own else {}
        for _ in range(2):
            for parameter in (p for module in modules for p in module.parameters()):
                parameter.grad = None
            made.step(*([x[half]] if place == 0 else []), **given)
        return {
            number: [p.grad for p in module.parameters()]
            for number, module in zip(own, modules, strict=True)
        }

    found = dist.run_ranks(program, 4)
    grads, _, _ = alone(stages)
    for pipe in (found[:2], found[2:]):
        by_stage = {**pipe[0], **pipe[1]}
        flat = [grad for number in range(stages) for grad in by_stage[number]]
        for one, two in zip(flat, grads, strict=True):
            plugrad.testing.assert_close(one, two)


def test_a_static_graph_is_refused_in_a_pipeline() -> None:
    def program() -> None:
        net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1), static_graph=True)
        stage = PipelineStage(net, 0, 1, "cpu", group=dist.new_group([dist.get_rank()]))
        schedule = ScheduleGPipe(stage, 1, nn.functional.mse_loss)
        with pytest.raises(NotImplementedError, match="static_graph=True is not supported in"):
            schedule.step(plugrad.ones(1, 1), target=plugrad.ones(1, 1))

    dist.run_ranks(program, 1)


def everything_of(stages: int, count: int) -> set[Any]:
    return {(kind, s, n) for kind in "FIW" for s in range(stages) for n in range(count)}


@drawn(100)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5))
def test_an_interleaved_zero_bubble_is_as_short_as_its_source_says(
    ranks: int, each: int, rounds: int
) -> None:
    stages, count = ranks * each, rounds * ranks
    lists = [orders.interleaved_zero_bubble(rank, ranks, stages, count) for rank in range(ranks)]
    assert {tuple(a) for actions in lists for a in actions} == everything_of(stages, count)
    # (p - 1) (F + I - W) turns of the pipeline are empty: Qi et al., 2023, table 2.
    assert run_through(lists, stages) == 3 * count * each + ranks - 1


@drawn(100)
@given(st.integers(1, 7), st.integers(1, 20))
def test_a_v_comes_to_its_end_and_keeps_little(ranks: int, count: int) -> None:
    stages = 2 * ranks
    lists = [orders.v_zero_bubble(rank, ranks, count) for rank in range(ranks)]
    assert {tuple(a) for actions in lists for a in actions} == everything_of(stages, count)
    for rank, actions in enumerate(lists):
        assert {a.stage for a in actions} == {rank, stages - 1 - rank}
        kept = itertools.accumulate({"F": 1, "I": 0, "W": -1}[a.kind] for a in actions)
        assert max(kept) <= stages
    turns = run_through(lists, stages)
    if count >= ranks:
        # Ranks idle while the first microbatch comes to them, and hardly ever later.
        assert turns <= 6 * count + ranks - 1 + ranks // 2
    # The first microbatch goes there and back, twice.
    assert turns >= max(6 * count + ranks - 1, 2 * stages)


def test_parts_and_wholes() -> None:
    x = plugrad.arange(12.0).reshape(4, 3)
    args, kwargs = split_args_kwargs_into_chunks(
        (x, [x, 1]), {"y": x, "flag": True}, 3, kwargs_chunk_spec={"y": TensorChunkSpec(1)}
    )
    assert [tuple(arg.shape) for arg, _ in args] == [(2, 3), (1, 3), (1, 3)]
    assert args[0][1][1] == 1
    assert [tuple(kwarg["y"].shape) for kwarg in kwargs] == [(4, 1)] * 3
    assert [kwarg["flag"] for kwarg in kwargs] == [True] * 3
    assert merge_chunks([arg for arg, _ in args]).tolist() == x.tolist()
    assert merge_chunks([k["y"] for k in kwargs], TensorChunkSpec(1)).tolist() == x.tolist()
    scalars = merge_chunks([{"a": plugrad.tensor(1.0)}, {"a": plugrad.tensor(2.0)}])
    assert scalars["a"].tolist() == [1.0, 2.0]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "stage": (lambda: PipelineStage(nn.Identity(), 5, 2, "cpu"), ValueError, r"\[0, 1\], got 5"),
    "rank": (
        lambda: PipelineStage(nn.Identity(), 1 - dist.get_rank(), 2, "cpu"),
        ValueError,
        "is on rank",
    ),
    "number": (lambda: PipelineStage(nn.Identity(), 0, 3, "cpu"), ValueError, "multiple of the 2"),
    "microbatches": (lambda: Schedule1F1B(own(), 0), ValueError, "n_microbatches.*0"),
    "no stage": (lambda: Schedule1F1B(nn.Identity(), 1), TypeError, "PipelineStage.*Identity"),
    "stages": (lambda: ScheduleLoopedBFS([own(4)], 1), ValueError, r"has the stages \[\d, \d\]"),
    "rows": (lambda: Schedule1F1B(own(), 3).eval(plugrad.ones(2)), ValueError, "argument 0.*3"),
    "no V": (
        lambda: ScheduleZBVZeroBubble([own(4), own(4, 2)], 4),
        ValueError,
        r"has the stages \[\d, \d\] of 4",
    ),
    "rounds of zero bubble": (
        lambda: ScheduleInterleavedZeroBubble([own(4), own(4, 2)], 5),
        ValueError,
        "multiple of the number of rounds, 2",
    ),
    "rounds": (
        lambda: ScheduleInterleaved1F1B([own(4), own(4, 2)], 5),
        ValueError,
        "multiple of the number of rounds, 2",
    ),
}


def own(stages: int = 2, more: int = 0) -> PipelineStage:
    return PipelineStage(nn.Identity(), dist.get_rank() + more, stages, "cpu")


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told(case: str) -> None:
    function, error, message = WRONG[case]

    def program() -> None:
        with pytest.raises(error, match=message):
            function()

    dist.run_ranks(program, 2)


def test_a_step_needs_a_loss() -> None:
    def program() -> None:
        schedule = ScheduleGPipe(own(), 1)
        if dist.get_rank() == 1:
            with pytest.raises(ValueError, match="needs a loss_fn"):
                schedule.step()

    dist.run_ranks(program, 2)
