"""Profiles of captured steps: operators, bytes, lifetimes, the order of gradients."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import plugrad
from plugrad import Tensor, nn, optim
from plugrad.distributed.simulate import (
    Costs,
    DataParallel,
    FullySharded,
    NodeCost,
    ParameterCost,
    Profile,
    TensorParallel,
    profile_step,
    simulate,
)
from plugrad_distributed.planning.profiling import _held

BATCH, WIDTHS = 8, (4, 16, 2)


def perceptron() -> nn.Sequential:
    first, second = nn.Linear(WIDTHS[0], WIDTHS[1]), nn.Linear(WIDTHS[1], WIDTHS[2])
    return nn.Sequential(first, nn.ReLU(), second)


def step_of(
    model: nn.Module, optimizer: optim.Optimizer | None
) -> Callable[[Tensor, Tensor], None]:
    def step(x: Tensor, y: Tensor) -> None:
        model.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if optimizer is not None:
            optimizer.step()

    return step


def batch() -> tuple[Tensor, Tensor]:
    return plugrad.ones(BATCH, WIDTHS[0]), plugrad.zeros(BATCH, WIDTHS[2])


@pytest.fixture(scope="module")
def profile() -> Profile:
    model = perceptron()
    momentum = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return profile_step(step_of(model, momentum), *batch(), repeats=2)


def test_operators_are_split_into_phases(profile: Profile) -> None:
    operators: dict[str, list[str]] = {}
    for node in profile.nodes:
        operators.setdefault(node.phase, []).append(node.op)
    assert operators["forward"] == ["linear", "relu", "linear", "mse_loss"]
    assert [op for op in operators["backward"] if op not in ("clone", "ones_like")] == [
        "mse_loss_backward",
        "linear_backward",
        "threshold_backward",
        "linear_backward",
    ]
    assert operators["optimizer"] == ["_update_sgd"]


def test_times_come_to_the_whole_step(profile: Profile) -> None:
    assert all(0 < node.fixed <= node.seconds for node in profile.nodes)
    assert profile.total_seconds == pytest.approx(profile.step_seconds)
    phases = [profile.seconds(phase) for phase in ("forward", "backward", "optimizer")]  # type: ignore[arg-type]  # names of phases
    assert sum(phases) == pytest.approx(profile.step_seconds)


def test_gradients_of_later_layers_arrive_first(profile: Profile) -> None:
    assert [p.shape for p in profile.parameters[:2]] in ([(2, 16), (2,)], [(2,), (2, 16)])
    assert {p.shape for p in profile.parameters[2:]} == {(16, 4), (16,)}
    arrivals = [p.arrival for p in profile.parameters]
    assert arrivals == sorted(arrivals)
    assert all(profile.nodes[n].phase == "backward" for n in arrivals)
    assert {p.used for p in profile.parameters} == {0, 2}


def test_bytes_are_those_of_the_model(profile: Profile) -> None:
    count = 4 * 16 + 16 + 16 * 2 + 2
    assert profile.parameter_bytes == 4 * count
    assert profile.optimizer_bytes == 4 * count
    assert profile.buffer_bytes == 4 * (BATCH * 4 + BATCH * 2)


def test_activations_live_from_forward_to_backward(profile: Profile) -> None:
    hidden, output = 4 * BATCH * 16, 4 * BATCH * 2
    made = {node.op: dict(node.makes) for node in profile.nodes if node.phase == "forward"}
    assert sum(made["relu"].values()) == hidden
    # relu keeps its result, the loss its input; the first layer's result is gone.
    assert profile.saved_bytes() == pytest.approx(hidden + output, abs=16)
    assert profile.peak_bytes() >= 2 * hidden


def test_views_are_what_they_are_views_of() -> None:
    weight = plugrad.ones(4, 4, requires_grad=True)

    def step(x: Tensor) -> None:
        weight.grad = None
        (x @ weight.t()).view(-1).sum().backward()

    found = profile_step(step, plugrad.ones(2, 4), repeats=1)
    assert len(found.parameters) == 1
    product = next(node for node in found.nodes if node.op in ("mm", "matmul"))
    assert found.parameters[0].name in product.reads
    made = {name for node in found.nodes for name, _ in node.makes}
    assert not any("view" in name for name in made)


def test_an_optimizer_that_cannot_be_captured_is_a_node() -> None:
    model = perceptron()
    adam = optim.Adam(model.parameters())
    found = profile_step(step_of(model, None), *batch(), optimizer=adam, repeats=2)
    assert found.nodes[-1].op == "Adam"
    assert found.nodes[-1].phase == "optimizer"
    # Two averages, and the count of steps of each parameter.
    assert found.optimizer_bytes == 2 * found.parameter_bytes + 4 * 4


def test_profiles_are_kept_in_files(profile: Profile, tmp_path: Path) -> None:
    profile.save(tmp_path / "step.json")
    assert Profile.load(tmp_path / "step.json") == profile


def test_memory_is_live_bytes_over_the_nodes() -> None:
    nodes = (
        NodeCost("a", "forward", 1.0, makes=(("a", 10),)),
        NodeCost("b", "forward", 1.0, reads=("a",), makes=(("b", 100),)),
        NodeCost("c", "backward", 1.0, reads=("b",), makes=(("c", 1),)),
        NodeCost("d", "backward", 1.0, reads=("c",), makes=(("d", 1000), ("g", 5))),
    )
    parameters = (ParameterCost("p", (1,), 5, 0, 3, "g"),)
    found = Profile(nodes, parameters, kept=("c", "g"))
    # The gradient of the parameter is counted elsewhere.
    assert found.live_bytes() == [10, 110, 101, 1001]
    assert found.peak_bytes() == 1001
    assert found.saved_bytes() == 110


def test_a_real_step_is_predicted(profile: Profile) -> None:
    costs = Costs.of(1e-6, 1e9)
    alone = simulate(profile, DataParallel(), 1, costs)
    assert alone.step_time == pytest.approx(profile.step_seconds)
    sharded = simulate(profile, FullySharded(0.0), 4, costs).memory
    assert sharded.parameters == pytest.approx(profile.parameter_bytes / 4)
    split = simulate(profile, TensorParallel(), 2, costs)
    assert split.memory.parameters < 0.7 * profile.parameter_bytes


def test_heads_of_attention_are_split_between_two_sums() -> None:
    block = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)

    def step(x: Tensor) -> None:
        block.zero_grad()
        block(x).sum().backward()

    found = profile_step(step, plugrad.ones(2, 3, 8), repeats=1)
    free = Costs.of(1.0, 1e30)
    # In each pass one after attention and one after the two linear layers, which takes 1 s here;
    # the gradient of the input is not needed.
    assert simulate(found, TensorParallel(), 2, free).communication == pytest.approx(3.0)


def test_the_peak_is_what_arrays_take() -> None:
    layers = [layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*layers)
    step = step_of(model, None)
    x, y = plugrad.ones(2048, 64), plugrad.zeros(2048, 64)
    found = profile_step(step, x, y, repeats=1)
    model.zero_grad()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    step(x, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # It is unknown whether kernels use memory of their own.
    assert found.peak_bytes() + found.parameter_bytes == pytest.approx(peak - before, rel=0.3)


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w: w.sum(), "must set gradients of parameters by backward"),
        (lambda w: (w * w).sum().backward(create_graph=True), "must not be recorded"),
    ],
)
def test_steps_without_a_plain_backward_are_refused(
    make: Callable[[Tensor], object], message: str
) -> None:
    weight = plugrad.ones(2, requires_grad=True)

    def step() -> None:
        weight.grad = None
        make(weight)

    with pytest.raises(ValueError, match=message):
        profile_step(step, repeats=1)


def test_gradients_that_are_there_already_are_refused() -> None:
    weight = plugrad.ones(2, requires_grad=True)

    def step() -> None:
        (weight * 2).sum().backward()

    with pytest.raises(ValueError, match="must begin without gradients: call zero_grad"):
        profile_step(step, repeats=1)


def test_repeats_must_be_positive() -> None:
    with pytest.raises(ValueError, match="repeats must be positive, got 0"):
        profile_step(lambda: None, repeats=0)


def test_a_smaller_batch_tells_what_does_not_depend_on_it() -> None:
    model = perceptron()
    x, y = batch()
    found = profile_step(step_of(model, None), x, y, smaller=(x[:2], y[:2]), repeats=2)
    assert len(found.nodes) == len(profile_step(step_of(model, None), x, y, repeats=1).nodes)
    assert any(node.held for node in found.nodes)
    assert all(node.held <= node.seconds - node.fixed + 1e-12 for node in found.nodes)


@pytest.mark.parametrize(
    ("weights", "rows"), [(0.0, 2.0), (3.0, 0.0), (3.0, 2.0)], ids=["rows", "weights", "both"]
)
def test_the_line_through_two_batches_ends_at_no_rows(weights: float, rows: float) -> None:
    call = 0.5
    long, short = (call + weights + rows * n for n in (8, 2))
    assert _held(long, short, 4.0, call) == pytest.approx(weights)


@pytest.mark.parametrize("count", [0, BATCH])
def test_a_batch_that_is_not_smaller_is_refused(count: int) -> None:
    x, y = batch()
    with pytest.raises(ValueError, match="smaller must be the arguments of the step with fewer"):
        profile_step(step_of(perceptron(), None), x, y, smaller=(x[:count], y[:count]))


def test_a_smaller_batch_must_make_the_same_graph() -> None:
    model = perceptron()

    def step(x: Tensor, y: Tensor) -> None:
        model.zero_grad()
        out = model(x) if len(x) > 4 else model(x).exp()
        nn.functional.mse_loss(out, y).backward()

    x, y = batch()
    with pytest.raises(ValueError, match="the same operators as the whole batch"):
        profile_step(step, x, y, smaller=(x[:2], y[:2]))
