"""Modules that are parallelized by a plan train as one process does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.device_mesh import init_device_mesh
from plugrad.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from plugrad.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from plugrad.nn import functional as F
from plugrad.testing import assert_close


class MLP(nn.Module):
    def __init__(self, features: int = 8) -> None:
        super().__init__()
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)

    def forward(self, x: Any) -> Any:
        return self.down(F.gelu(self.up(x)))


class Attention(nn.Module):
    """Heads are as many as there are in what `query` gives: fewer on each rank."""

    def __init__(self, features: int = 8, head: int = 2) -> None:
        super().__init__()
        self.head = head
        self.query = nn.Linear(features, features)
        self.key = nn.Linear(features, features)
        self.value = nn.Linear(features, features)
        self.out = nn.Linear(features, features)

    def forward(self, x: Any) -> Any:
        def heads(part: Any) -> Any:
            return part.view(part.shape[0], part.shape[1], -1, self.head).transpose(1, 2)

        found = F.scaled_dot_product_attention(
            heads(self.query(x)), heads(self.key(x)), heads(self.value(x)), is_causal=True
        )
        return self.out(found.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(8)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(8)
        self.mlp = MLP()

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.block = Block()
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 12)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.norm(self.block(self.embedding(tokens))))


TENSOR_PARALLEL: dict[str, ParallelStyle] = {
    "attention.query": ColwiseParallel(),
    "attention.key": ColwiseParallel(),
    "attention.value": ColwiseParallel(),
    "attention.out": RowwiseParallel(),
    "mlp.up": ColwiseParallel(),
    "mlp.down": RowwiseParallel(),
}


def sequence_parallel() -> dict[str, ParallelStyle]:
    whole = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())
    return {
        "": PrepareModuleInputOutput(
            input_layouts=Replicate(),
            desired_input_layouts=Shard(1),
            output_layouts=Shard(1),
            desired_output_layouts=Replicate(),
        ),
        "norm1": SequenceParallel(),
        "norm2": SequenceParallel(),
        "attention": whole,
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "mlp": whole,
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }


def _filled(module: Any) -> Any:
    """The module with parameters that are the same in every thread."""
    generator = plugrad.Generator().manual_seed(3)
    with plugrad.no_grad():
        for parameter in module.parameters():
            parameter.copy_(plugrad.randn(parameter.shape, generator=generator) * 0.3)
    return module.to(plugrad.float64)


def _batch(*shape: int) -> Any:
    generator = plugrad.Generator().manual_seed(5)
    return plugrad.randn(shape, generator=generator, dtype=plugrad.float64)


def _whole(tensor: Any) -> Any:
    return tensor.full_tensor().detach() if isinstance(tensor, DTensor) else tensor.detach()


def _trained(model: Any, make: Callable[[Any], Any], x: Any, steps: int) -> list[Any]:
    """Losses, then the parameters."""
    optimizer = make(model.parameters())
    found: list[Any] = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        found.append(_whole(loss))
    return found + [_whole(parameter) for parameter in model.parameters()]


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda parameters: plugrad.optim.SGD(parameters, 0.1, momentum=0.9),
    "SGD_foreach": lambda parameters: plugrad.optim.SGD(parameters, 0.1, foreach=True),
    "Adam": lambda parameters: plugrad.optim.Adam(parameters, 0.01),
    "Adam_foreach": lambda parameters: plugrad.optim.Adam(parameters, 0.01, foreach=True),
    "AdamW": lambda parameters: plugrad.optim.AdamW(parameters, 0.01, weight_decay=0.1),
}


def _compare(
    build: Callable[[], Any],
    plan: Callable[[], dict[str, ParallelStyle]],
    make: Callable[[Any], Any],
    ranks: int,
    x: Any,
) -> None:
    expected = _trained(_filled(build()), make, x, 2)

    def run() -> None:
        model = _filled(build())
        parallelize_module(model, init_device_mesh("cpu", (ranks,)), plan())
        for found, wanted in zip(_trained(model, make, x, 2), expected, strict=True):
            assert_close(found, wanted)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dist.run_ranks(run, ranks)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_tensor_parallel_mlp_trains_as_one_process_does(optimizer: str) -> None:
    def plan() -> dict[str, ParallelStyle]:
        return {"up": ColwiseParallel(), "down": RowwiseParallel()}

    _compare(MLP, plan, OPTIMIZERS[optimizer], 2, _batch(3, 8))


@pytest.mark.parametrize(("plan", "ranks"), [(lambda: TENSOR_PARALLEL, 4), (sequence_parallel, 2)])
def test_a_parallel_transformer_block_trains_as_one_process_does(
    plan: Callable[[], dict[str, ParallelStyle]], ranks: int
) -> None:
    _compare(Block, plan, OPTIMIZERS["Adam"], ranks, _batch(2, 4, 8))


def test_an_uneven_number_of_features_is_cut_as_well() -> None:
    def plan() -> dict[str, ParallelStyle]:
        return {"up": ColwiseParallel(use_local_output=False), "down": RowwiseParallel()}

    _compare(lambda: MLP(3), plan, OPTIMIZERS["SGD"], 4, _batch(2, 3))


def _language_loss(model: Any, tokens: Any, targets: Any) -> Any:
    with loss_parallel():
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets)
        loss.backward()
    return loss


@pytest.mark.parametrize("style", [RowwiseParallel, ColwiseParallel])
def test_a_language_model_with_a_parallel_loss_has_one_process_s_gradients(style: Any) -> None:
    tokens = plugrad.tensor([[1, 11, 3], [5, 0, 7]])
    targets = plugrad.tensor([11, 3, 2, 0, 7, 8])
    plain = _filled(Model())
    expected = _language_loss(plain, tokens, targets).detach()

    def run() -> None:
        model = _filled(Model())
        parallelize_module(
            model,
            init_device_mesh("cpu", (2,)),
            {
                "embedding": style(input_layouts=Replicate(), output_layouts=Replicate()),
                **{f"block.{name}": one for name, one in TENSOR_PARALLEL.items()},
                "head": ColwiseParallel(use_local_output=False),
            },
        )
        assert_close(_whole(_language_loss(model, tokens, targets)), expected)
        for found, wanted in zip(model.parameters(), plain.parameters(), strict=True):
            assert found.grad is not None
            assert_close(_whole(found.grad), wanted.grad)

    dist.run_ranks(run, 2)


def test_logits_cut_along_the_classes_are_not_gathered() -> None:
    def run() -> None:
        mesh = init_device_mesh("cpu", (2,))
        logits = distribute_tensor(_batch(4, 6), mesh, [Shard(1)]).requires_grad_()
        assert logits.log_softmax(1).placements == (Shard(1),)
        with loss_parallel():
            F.cross_entropy(logits, plugrad.tensor([0, 5, 2, 3])).backward()
        assert logits.grad.placements == (Shard(1),)

    dist.run_ranks(run, 2)


def test_data_and_tensor_parallel_together_on_a_mesh_of_two_dimensions() -> None:
    x = _batch(4, 8)
    plain = _filled(MLP())
    (plain(x) ** 2).sum().backward()

    def run() -> None:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = _filled(MLP())
        parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        rows = x.chunk(2)[mesh.get_local_rank("dp")]
        (model(rows) ** 2).sum().backward()
        for found, wanted in zip(model.parameters(), plain.parameters(), strict=True):
            grad = _whole(found.grad)
            dist.all_reduce(grad, group=mesh.get_group("dp"))
            assert_close(grad, wanted.grad)

    dist.run_ranks(run, 4)


def test_a_mesh_of_two_dimensions_cuts_rows_of_the_batch_and_features() -> None:
    x = _batch(4, 8)
    expected = _trained(_filled(MLP()), OPTIMIZERS["Adam"], x, 3)
    weights = {"up": Shard(0), "down": Shard(1)}

    def partition(name: str, module: Any, mesh: Any) -> None:
        if name in weights:
            cut = distribute_tensor(module.weight.detach(), mesh, [Replicate(), weights[name]])
            module.register_parameter("weight", nn.Parameter(cut))

    def run() -> None:
        mesh = init_device_mesh("cpu", (2, 2))
        model = distribute_module(_filled(MLP()), mesh, partition)
        rows = distribute_tensor(x, mesh, [Shard(0), Replicate()])
        for found, wanted in zip(
            _trained(model, OPTIMIZERS["Adam"], rows, 3), expected, strict=True
        ):
            assert_close(found, wanted)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dist.run_ranks(run, 4)


def test_parts_may_be_arrays_of_jax() -> None:
    pytest.importorskip("jax")
    x = _batch(3, 8)
    expected = _trained(_filled(MLP()).float(), OPTIMIZERS["Adam"], x.float(), 2)

    def run() -> None:
        model = parallelize_module(
            _filled(MLP()).float(),
            init_device_mesh("jax", (2,)),
            {"up": ColwiseParallel(), "down": RowwiseParallel()},
        )
        found = _trained(model, OPTIMIZERS["Adam"], x.float().to("jax"), 2)
        for one, wanted in zip(found, expected, strict=True):
            assert one.device.type == "jax"
            assert_close(one.cpu(), wanted, rtol=1e-4, atol=1e-5)

    dist.run_ranks(run, 2)


def test_prepared_outputs_are_brought_to_the_wanted_placement() -> None:
    def run() -> None:
        module = parallelize_module(
            nn.Identity(),
            init_device_mesh("cpu", (2,)),
            PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0)),
        )
        assert module(plugrad.ones(3, 2)).shape == (2 - dist.get_rank(), 2)

    dist.run_ranks(run, 2)


def test_a_plan_that_cannot_be_followed_is_named() -> None:
    def run() -> None:
        mesh = init_device_mesh("cpu", (2,))
        with pytest.raises(NotImplementedError, match=r"only support nn\.Linear and nn\.Embedding"):
            parallelize_module(nn.LayerNorm(4), mesh, ColwiseParallel())
        with pytest.raises(TypeError, match="parallelize_plan, int found"):
            parallelize_module(nn.Linear(2, 2), mesh, 3)  # type: ignore[arg-type]  # on purpose
        with pytest.raises(ValueError, match="same length"):
            PrepareModuleInput(
                input_layouts=Shard(0), desired_input_layouts=(Shard(0), Replicate())
            )

    dist.run_ranks(run, 2)
    with pytest.warns(UserWarning, match="no submodule matching token 'missing'"):
        dist.run_ranks(
            lambda: parallelize_module(
                MLP(), init_device_mesh("cpu", (1,)), {"missing": ColwiseParallel()}
            ),
            1,
        )
