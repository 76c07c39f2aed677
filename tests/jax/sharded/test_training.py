"""Training on arrays that are spread over a mesh, operator by operator and as a captured step.

Oracle: the same training on one device, operator by operator. XLA sums in another order on several
devices, so results are equal up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import plugrad
import plugrad_jax
from plugrad import nn

MESH = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
STEPS = 3


def mlp() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.25), nn.Linear(8, 4))


class Block(nn.Module):
    """A transformer block: attention of two heads, and two layers that are split over `model`."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.before, self.after = nn.LayerNorm(8), nn.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        y = self.before(x)
        heads = [f(y).unflatten(-1, (2, 4)).transpose(1, 2) for f in (self.q, self.k, self.v)]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


COLUMNS = {
    r"^0\.(weight|bias)|^(q|k|v|up)\.": ("model",),
    r"^(3|out|down)\.weight": (None, "model"),
}


class Plan(NamedTuple):
    """How a model and its batches are spread."""

    batch: Any
    rules: Any


PLANS = {
    "data parallel": Plan((("data", "model"),), {}),
    "tensor parallel": Plan((), COLUMNS),
    "both": Plan(("data",), COLUMNS),
    "everything in parts": Plan(("data",), {r"weight": (("data", "model"),)}),
}


class Trained(NamedTuple):
    """What training gave."""

    losses: list[float]
    model: Any
    optimizer: Any
    output: Any


def sgd(parameters: Any) -> Any:
    return plugrad.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters: Any) -> Any:
    return plugrad.optim.AdamW(parameters, lr=0.05)


def train(
    make: Callable[[], Any],
    shape: tuple[int, ...],
    make_optimizer: Callable[[Any], Any],
    plan: Plan | None,
    captured: bool = False,
) -> Trained:
    plugrad.manual_seed(0)
    model = make().to("jax:0")
    x = plugrad.rand(*shape, device="jax:0")
    y = x.roll(1, -1)
    if plan is not None:
        plugrad_jax.shard_parameters(model, MESH, plan.rules)
        x, y = (plugrad_jax.shard(each, MESH, plan.batch) for each in (x, y))
    optimizer = make_optimizer(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        output = model(x)
        loss = nn.functional.mse_loss(output, y)
        loss.backward()
        optimizer.step()
        return loss.detach(), output.detach()

    run: Any = plugrad_jax.jit(step) if captured else step
    losses = []
    for _ in range(STEPS):
        loss, output = run(x, y)
        losses.append(loss.item())
    return Trained(losses, model, optimizer, output)


def assert_same(found: Trained, expected: Trained) -> None:
    assert found.losses == pytest.approx(expected.losses, rel=1e-5)
    names = dict(expected.model.named_parameters())
    for name, parameter in found.model.named_parameters():
        for ours, theirs in ((parameter, names[name]), (parameter.grad, names[name].grad)):
            np.testing.assert_allclose(
                ours.detach().cpu().numpy(), theirs.detach().cpu().numpy(), rtol=1e-4, atol=1e-5
            )


def assert_spread(trained: Trained, plan: Plan) -> None:
    """Parameters, gradients and the optimizer's state are where the rules say; the batch is, too"""
    first = plan.batch[0] if plan.batch else None
    sharding = plugrad_jax.sharding_of(trained.output)
    assert len(sharding.device_set) == 4
    assert next(iter(sharding.spec), None) == first
    fresh = plugrad_jax.shard_parameters(type_of(trained.model)(), MESH, plan.rules)
    wanted = {name: plugrad_jax.sharding_of(each) for name, each in fresh.named_parameters()}
    for name, parameter in trained.model.named_parameters():
        state = [
            value
            for value in trained.optimizer.state[parameter].values()
            if isinstance(value, plugrad.Tensor) and value.device.type == "jax" and value.dim()
        ]
        assert state
        for tensor in (parameter, parameter.grad, *state):
            found = plugrad_jax.sharding_of(tensor)
            assert found.is_equivalent_to(wanted[name], tensor.dim()), name


def type_of(model: Any) -> Callable[[], Any]:
    return Block if isinstance(model, Block) else mlp


MODELS = {"mlp": (mlp, (8, 4)), "block": (Block, (4, 6, 8))}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, Any], Trained]:
    return {
        (name, optimizer): train(*MODELS[name], optimizer, None)
        for name, optimizer in (("mlp", sgd), ("mlp", adam), ("block", adam))
    }


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize(
    ("model", "optimizer", "plan"),
    [
        ("mlp", sgd, "data parallel"),
        ("mlp", sgd, "both"),
        ("mlp", adam, "everything in parts"),
        ("block", adam, "tensor parallel"),
        ("block", adam, "both"),
    ],
)
def test_training_is_that_of_one_device(
    model: str, optimizer: Any, plan: str, captured: bool, expected: Any
) -> None:
    found = train(*MODELS[model], optimizer, PLANS[plan], captured)
    assert_same(found, expected[model, optimizer])
    assert_spread(found, PLANS[plan])


def test_a_captured_step_is_traced_no_more_often_than_on_one_device() -> None:
    net = plugrad_jax.shard_parameters(mlp(), MESH, COLUMNS)
    optimizer = adam(net.parameters())

    @plugrad_jax.jit
    def step(x: Any) -> Any:
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x = plugrad_jax.shard(plugrad.ones(8, 4), MESH, ("data",))
    for _ in range(4):
        step(x)
    assert step.traces == 2  # the first one makes the optimizer's state
    assert {program._runs.mesh for found in step._programs.values() for program in found} == {MESH}


def test_a_step_that_was_captured_before_runs_on_the_mesh_then() -> None:
    plugrad.manual_seed(0)
    net = mlp().to("jax:0").eval()

    @plugrad_jax.jit
    def output(x: Any) -> Any:
        return net(x) + plugrad.ones(4, device="jax:0")

    x = plugrad.rand(8, 4, device="jax:0")
    expected = output(x).cpu()
    plugrad_jax.shard_parameters(net, MESH, COLUMNS)
    for given in (x, plugrad_jax.shard(x, MESH, ("data",)), x):
        found = output(given)
        assert len(plugrad_jax.sharding_of(found).device_set) == 4
        assert plugrad.allclose(found.cpu(), expected, atol=1e-6)
    for parameter in net.parameters():
        parameter.data = plugrad_jax.unshard(parameter.detach())
    found = output(x)
    assert found.array.devices() == {jax.devices()[0]}
    assert plugrad.allclose(found.cpu(), expected, atol=1e-6)


def test_spread_and_plain_inputs_share_a_trace_and_its_programs() -> None:
    plugrad_jax.shard(plugrad.ones(4), MESH, ("data",))
    compiled = 0

    def count(event: str, *_: Any, **__: Any) -> None:
        nonlocal compiled
        compiled += event == "/jax/core/compile/backend_compile_duration"

    @plugrad_jax.jit
    def double(x: Any) -> Any:
        return x * 2

    plain = plugrad.ones(4, 2, device="jax:0")
    inputs = [plain, plugrad_jax.shard(plain, MESH, ("data",))]
    expected: list[Any] = [double(x).array.sharding for x in inputs]
    jax.monitoring.register_event_duration_secs_listener(count)
    for _ in range(3):
        assert [double(x).array.sharding for x in inputs] == expected
    assert (double.traces, compiled) == (1, 0)
    plugrad_jax.jit(lambda x: x * 3)(plain)
    assert compiled > 0
    jax.monitoring.unregister_event_duration_listener(count)
    assert [len(sharding.device_set) for sharding in expected] == [1, 4]


def test_a_step_can_say_where_its_results_are() -> None:
    @plugrad_jax.jit
    def split(x: Any) -> tuple[Any, Any, Any]:
        y = plugrad_jax.shard(x * 2, MESH, ("data", "model"))
        return y, plugrad_jax.replicate(y + 1, MESH), plugrad.zeros(3, device="jax:0")

    y, z, zeros = split(plugrad.ones(4, 2, device="jax:0"))
    assert tuple(plugrad_jax.sharding_of(y).spec) == ("data", "model")
    assert plugrad_jax.sharding_of(z).is_fully_replicated
    assert (y.sum().item(), z.sum().item(), zeros.tolist()) == (16.0, 24.0, [0.0] * 3)


def test_a_step_writes_to_tensors_where_they_are() -> None:
    total = plugrad_jax.shard(plugrad.zeros(4, 2), MESH, ("data", "model"))
    plain = plugrad.zeros((), device="jax:0")

    @plugrad_jax.jit
    def add(x: Any) -> None:
        total.add_(x)
        total[0] += 1
        plain.add_(x.sum())

    x = plugrad_jax.shard(plugrad.ones(4, 2), MESH, (None, "data"))
    for _ in range(2):
        add(x)
    assert total.tolist() == [[4.0, 4.0], [2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]
    assert tuple(plugrad_jax.sharding_of(total).spec) == ("data", "model")
    assert (plain.item(), add.traces) == (16.0, 1)


def test_random_numbers_of_a_step_are_those_of_one_device() -> None:
    @plugrad_jax.jit
    def noisy(x: Any) -> Any:
        return nn.functional.dropout(x) + plugrad.rand_like(x)

    x = plugrad.ones(4, 2, device="jax:0")
    drawn = []
    for given in (x, plugrad_jax.shard(x, MESH, ("data",))):
        plugrad.manual_seed(5)
        found = [noisy(given), noisy(given)]
        after = plugrad.rand(2, device="jax:0")
        drawn.append([each.tolist() for each in (*found, after)])
    for ours, theirs in zip(*drawn, strict=True):
        np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-6)
    assert after.array.devices() == {jax.devices()[0]}


def test_steps_of_one_device_go_on_beside() -> None:
    plugrad_jax.shard(plugrad.ones(4), MESH, ("data",))

    @plugrad_jax.jit
    def made() -> Any:
        return plugrad.ones(2, device="jax:1") * 3

    for _ in range(2):
        assert made().array.devices() == {jax.devices()[1]}


def test_compile_makes_such_a_step() -> None:
    weight = plugrad_jax.shard(plugrad.ones(4, 2), MESH, ("model",)).requires_grad_()

    def step(x: Any) -> Any:
        loss = (x @ weight).sum()
        loss.backward()
        return loss

    compiled = plugrad.compile(step, device="jax")
    assert compiled(plugrad.ones(3, 4, device="jax:0")).item() == 24.0
    assert tuple(plugrad_jax.sharding_of(weight.grad).spec) == ("model",)
    assert weight.grad.tolist() == [[3.0, 3.0]] * 4


def test_every_sharding_in_a_step_of_two_meshes_is_refused() -> None:
    two = Mesh(np.array(jax.devices()[:2]), ("data",))
    a = plugrad_jax.shard(plugrad.ones(4), MESH, ("data",))
    b = plugrad_jax.shard(plugrad.ones(4), two, ("data",))
    with pytest.raises(RuntimeError, match="spread over different devices"):
        plugrad_jax.jit(lambda a, b: a + b)(a, b)
