"""DTensors: from ranks' tensors and back, between placements, with gradients."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.device_mesh import init_device_mesh
from plugrad.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    rand,
)
from plugrad.testing import assert_close

R, P = Replicate(), Partial()


def _line(function: Callable[[Any], Any], ranks: int = 2) -> list[Any]:
    """The function's results on the ranks of a mesh of one dimension."""
    return dist.run_ranks(lambda: function(init_device_mesh("cpu", (ranks,))), ranks)


def _matrix(rows: int = 5, columns: int = 3) -> Any:
    return plugrad.arange(float(rows * columns), dtype=plugrad.float64).reshape(rows, columns)


def test_parts_are_those_that_chunk_makes() -> None:
    x = _matrix(5, 2)

    def run(mesh: Any) -> Any:
        return distribute_tensor(x, mesh, [Shard(0)]).to_local()

    parts = _line(run, 4)
    assert [tuple(part.shape) for part in parts] == [(2, 2), (2, 2), (1, 2), (0, 2)]
    assert_close(plugrad.cat(parts), x)


@pytest.mark.parametrize("mesh_shape", [(2,), (3,), (2, 2)])
def test_every_redistribution_keeps_the_tensor(mesh_shape: tuple[int, ...]) -> None:
    x = _matrix(5, 3)
    single = [R, Shard(0), Shard(1)]
    targets = list(itertools.product(single, repeat=len(mesh_shape)))
    sources = [*targets, (P,) * len(mesh_shape), (P, *[Shard(0)] * (len(mesh_shape) - 1))]

    def run() -> None:
        mesh = init_device_mesh("cpu", mesh_shape)
        for source in sources:
            for target in targets:
                wanted = distribute_tensor(x, mesh, target).to_local()
                given = _with_partials(x, mesh, source)
                found = given.redistribute(placements=target)
                assert found.placements == target
                assert_close(
                    found.to_local(), wanted, msg=lambda m, s=source, t=target: f"{s} {t}: {m}"
                )
                assert_close(given.full_tensor(), x)

    dist.run_ranks(run, int(plugrad.tensor(mesh_shape).prod()))


def _with_partials(x: Any, mesh: Any, placements: Any) -> Any:
    """The tensor `x`, as a sum where a placement is `Partial`."""
    plain = tuple(R if one == P else one for one in placements)
    part = distribute_tensor(x, mesh, plain).to_local()
    for mesh_dim, one in enumerate(placements):
        if one == P:
            part = part / mesh.size(mesh_dim)
    return DTensor.from_local(part, mesh, placements, shape=x.shape, stride=x.stride())


@pytest.mark.parametrize(
    ("reduce_op", "expected"),
    [("sum", 3.0), ("avg", 1.5), ("max", 2.0), ("min", 1.0), ("product", 2.0)],
)
def test_partial_is_reduced_by_its_operation(reduce_op: str, expected: float) -> None:
    def run(mesh: Any) -> None:
        part = plugrad.full((3,), dist.get_rank() + 1.0)
        given = DTensor.from_local(part, mesh, [Partial(reduce_op)])
        assert_close(given.full_tensor(), plugrad.full((3,), expected))
        assert_close(given.redistribute(placements=[Shard(0)]).full_tensor(), given.full_tensor())

    _line(run)


@pytest.mark.parametrize("source", [R, Shard(0), Shard(1)])
@pytest.mark.parametrize("target", [R, Shard(0), Shard(1)])
def test_gradients_and_second_gradients_pass_redistributions(source: Any, target: Any) -> None:
    x = _matrix(5, 3) / 10

    def run(mesh: Any) -> None:
        leaf = distribute_tensor(x, mesh, [source]).requires_grad_()
        moved = (leaf * leaf * leaf).redistribute(placements=[target])
        (grad,) = plugrad.autograd.grad((moved * moved).sum(), leaf, create_graph=True)
        assert_close(grad.full_tensor().detach(), 6 * x**5)
        (second,) = plugrad.autograd.grad(grad.sum(), leaf)
        assert_close(second.full_tensor(), 30 * x**4)

    _line(run)


def test_a_part_that_comes_back_as_a_tensor_carries_gradients() -> None:
    x = _matrix(4, 2)

    def run(mesh: Any) -> None:
        leaf = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
        (leaf.to_local() * (dist.get_rank() + 2)).sum().backward()
        assert leaf.grad.placements == (Shard(0),)
        assert_close(
            leaf.grad.full_tensor(),
            plugrad.tensor([[2.0] * 2] * 2 + [[3.0] * 2] * 2, dtype=x.dtype),
        )

    _line(run)


def test_the_gradient_of_a_replica_that_ranks_use_differently_is_a_sum_if_so_declared() -> None:
    def run(mesh: Any) -> None:
        leaf = distribute_tensor(plugrad.ones(2), mesh, [R]).requires_grad_()
        local = leaf.to_local(grad_placements=[P])
        (local * (dist.get_rank() + 1)).sum().backward()
        assert leaf.grad.placements == (R,)
        assert_close(leaf.grad.full_tensor(), plugrad.full((2,), 3.0))

    _line(run)


def test_from_local_gives_each_rank_the_gradient_of_its_part() -> None:
    def run(mesh: Any) -> None:
        part = plugrad.full((2,), dist.get_rank() + 1.0).requires_grad_()
        whole = DTensor.from_local(part, mesh, [Shard(0)])
        assert whole.shape == (4,)
        (whole.full_tensor() * plugrad.arange(4.0)).sum().backward()
        assert_close(part.grad, plugrad.tensor([0.0, 1.0]) + 2 * dist.get_rank())

    _line(run)


def test_the_gradient_of_a_summand_is_that_of_the_sum() -> None:
    def run(mesh: Any) -> None:
        part = plugrad.full((2,), dist.get_rank() + 1.0).requires_grad_()
        total = DTensor.from_local(part, mesh, [P])
        (total * total).sum().backward()
        assert_close(part.grad, plugrad.full((2,), 6.0))

    _line(run)


def test_a_part_that_is_transposed_makes_a_whole_that_is() -> None:
    x = _matrix(4, 6)

    def run(mesh: Any) -> None:
        part = x.chunk(2)[dist.get_rank()].clone().t()
        whole = DTensor.from_local(part, mesh, [Shard(1)])
        assert whole.shape == (6, 4)
        assert whole.stride() == (1, 6)
        assert_close(whole.full_tensor(), x.t())
        assert_close(whole.reshape(-1).full_tensor(), x.t().reshape(-1))
        whole[0] = 9.0
        assert_close(part[0], plugrad.full((2,), 9.0, dtype=x.dtype))

    _line(run)


def test_run_check_takes_replicas_from_the_first_rank_and_compares_shapes() -> None:
    def run(mesh: Any) -> None:
        part = plugrad.full((2,), dist.get_rank() + 1.0)
        found = DTensor.from_local(part, mesh, [R], run_check=True)
        assert_close(found.to_local(), plugrad.ones(2))
        with pytest.raises(ValueError, match="inconsistent tensor shape"):
            DTensor.from_local(plugrad.ones(dist.get_rank() + 1), mesh, [Shard(0)], run_check=True)

    _line(run)


def test_distribute_tensor_takes_the_elements_of_one_rank() -> None:
    def run(mesh: Any) -> Any:
        mine = plugrad.full((2,), float(dist.get_rank()))
        of_first = distribute_tensor(mine, mesh, [R]).to_local().tolist()
        own = distribute_tensor(mine, mesh, [R], src_data_rank=None).to_local().tolist()
        return of_first, own

    assert _line(run) == [([0.0, 0.0], [0.0, 0.0]), ([0.0, 0.0], [1.0, 1.0])]


def test_a_tensor_is_a_dtensor_by_its_key() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(plugrad.ones(4, 2), mesh, [Shard(0)])
        parameter = nn.Parameter(x)
        assert isinstance(parameter, DTensor)
        assert isinstance(parameter, nn.Parameter)
        assert parameter.placements == (Shard(0),)
        assert not isinstance(plugrad.ones(2), DTensor)
        assert not hasattr(plugrad.ones(2), "placements")
        keys = repr(plugrad.dispatch.dispatch_keys(x))
        assert "AutogradSharded" in keys

    _line(run)


def test_a_dtensor_prints_without_a_collective() -> None:
    def run(mesh: Any) -> str:
        x = distribute_tensor(plugrad.arange(4.0), mesh, [Shard(0)])
        return repr(x) if dist.get_rank() == 1 else ""

    assert _line(run)[1] == (
        "DTensor(local_tensor=tensor([2., 3.]), device_mesh=DeviceMesh((2,), 'cpu', ranks=[0, 1]), "
        "placements=(Shard(dim=0),))"
    )


def test_values_are_read_from_the_whole() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(plugrad.arange(4.0), mesh, [Shard(0)])
        assert x.sum().item() == 6.0
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert bool((x >= 0).all())
        assert len(x) == 4
        assert_close(x.cpu(), plugrad.arange(4.0))

    _line(run)


def test_tensors_made_on_a_dtensor_s_device_are_replicated() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(plugrad.ones(4), mesh, [Shard(0)])
        made = plugrad.arange(4.0, device=x.device)
        assert made.placements == (R,)
        assert_close((x + made).full_tensor(), plugrad.arange(1.0, 5.0))
        assert plugrad.zeros_like(x).placements == (Shard(0),)

    _line(run)


def test_random_numbers_can_be_the_first_tensor_on_a_mesh() -> None:
    # Each call makes a new mesh; the backend counts at least two, so the third tells.
    for _ in range(3):
        parts = _line(lambda mesh: rand(5, device_mesh=mesh, placements=[Shard(0)]).to_local())
        assert [len(part) for part in parts] == [3, 2]


def test_copies_lie_as_their_originals_do() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(plugrad.ones(4), mesh, [Shard(0)])
        for copied in (copy.deepcopy(x), copy.deepcopy(nn.Parameter(x)), x.double()):
            assert copied.placements == (Shard(0),)
            copied.detach().zero_()
            assert_close(x.full_tensor(), plugrad.ones(4))

    _line(run)


def test_hooks_and_accumulation_see_dtensors() -> None:
    def run(mesh: Any) -> None:
        leaf = distribute_tensor(plugrad.ones(4), mesh, [Shard(0)]).requires_grad_()
        seen: list[Any] = []
        leaf.register_hook(lambda grad: seen.append((isinstance(grad, DTensor), dist.get_rank())))
        for _ in range(2):
            (leaf * 3).sum().backward()
        assert seen == [(True, dist.get_rank())] * 2
        assert_close(leaf.grad.full_tensor(), plugrad.full((4,), 6.0))

    _line(run)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("batch", [R, Shard(0), Shard(1)])
@pytest.mark.parametrize("own", [R, Shard(0), Shard(1)])
def test_the_gradient_of_a_leaf_lies_as_the_leaf_does(
    own: Any, batch: Any, create_graph: bool
) -> None:
    x, w = _matrix(5, 4) / 10, _matrix(4, 3) / 10

    def run(mesh: Any) -> None:
        leaf = distribute_tensor(w, mesh, [own]).requires_grad_()
        rows = distribute_tensor(x, mesh, [batch])
        plain = w.clone().requires_grad_()
        for _ in range(2):
            ((rows @ leaf) ** 2).sum().backward(create_graph=create_graph)
            ((x @ plain) ** 2).sum().backward()
            assert leaf.grad is not None
            assert leaf.grad.placements == (own,)
            assert leaf.grad.to_local().shape == leaf.to_local().shape
            assert_close(leaf.grad.full_tensor().detach(), plain.grad)

    _line(run)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_a_step_of_an_optimizer_sends_nothing(name: str) -> None:
    x = _matrix(6, 4) / 10

    def run(mesh: Any) -> list[Any]:
        leaves = [
            distribute_tensor(_matrix(4, 2), mesh, [placement]).requires_grad_()
            for placement in (Shard(0), Shard(1), R)
        ]
        optimizer = getattr(plugrad.optim, name)(leaves, lr=0.1)
        rows = distribute_tensor(x, mesh, [Shard(0)])
        sum((rows @ leaf).square().sum() for leaf in leaves).backward()
        with plugrad.autograd.profiler.profile() as profile:
            optimizer.step()
        return [event.name for event in profile.function_events]

    for names in _line(run):
        assert any("add" in one for one in names)
        assert not [one for one in names if "distributed" in one]


def test_weights_of_a_batch_that_is_cut_get_the_gradient_of_all_rows() -> None:
    x = _matrix(6, 3) / 10

    def run(mesh: Any) -> None:
        plugrad.manual_seed(0)
        model = nn.Linear(3, 2).to(plugrad.float64)
        with plugrad.no_grad():
            for parameter in model.parameters():
                parameter.fill_(0.5)
        plain = copy.deepcopy(model)
        distribute_module(model, mesh)
        rows = distribute_tensor(x, mesh, [Shard(0)])
        (model(rows) ** 2).mean().backward()
        (plain(x) ** 2).mean().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        expected = nn.utils.clip_grad_norm_(plain.parameters(), 0.1)
        assert_close(norm.full_tensor(), expected)
        for found, wanted in zip(model.parameters(), plain.parameters(), strict=True):
            assert_close(found.grad.full_tensor(), wanted.grad)

    _line(run)


def test_forward_mode_and_functional_transforms_work_on_dtensors() -> None:
    x = _matrix(4, 2) / 10

    def run(mesh: Any) -> None:
        d = distribute_tensor(x, mesh, [Shard(0)])
        grad = plugrad.func.grad(lambda t: (t.sin() ** 2).sum())(d)
        assert_close(grad.full_tensor(), 2 * x.sin() * x.cos())
        _, tangent = plugrad.func.jvp(plugrad.exp, (d,), (plugrad.ones_like(d),))
        assert_close(tangent.full_tensor(), x.exp())

    _line(run)


def test_distribute_module_replicates_what_the_partition_leaves() -> None:
    def run(mesh: Any) -> None:
        module = nn.BatchNorm1d(4)

        def partition(name: str, part: Any, mesh: Any) -> None:
            part.register_parameter(
                "weight", nn.Parameter(distribute_tensor(part.weight.detach(), mesh, [Shard(0)]))
            )

        distribute_module(module, mesh, partition)
        assert module.weight.placements == (Shard(0),)
        assert module.bias.placements == (R,)
        assert module.running_mean.placements == (R,)
        with pytest.raises(RuntimeError, match="only be called once"):
            distribute_module(module, mesh)

    _line(run)


def test_wrong_arguments_are_named() -> None:
    def run(mesh: Any) -> None:
        x = distribute_tensor(plugrad.ones(4, 2), mesh, [Shard(0)])
        with pytest.raises(ValueError, match=r"same length as `device_mesh\.ndim`"):
            x.redistribute(placements=[R, R])
        with pytest.raises(IndexError, match=r"Shard\(dim=2\) is out of range"):
            x.redistribute(placements=[Shard(2)])
        with pytest.raises(RuntimeError, match="Can not redistribute to Partial"):
            x.redistribute(placements=[P])
        with pytest.raises(TypeError, match="placements must be Shard, Replicate or Partial"):
            x.redistribute(placements=["R"])
        with pytest.raises(RuntimeError, match=r"only accepts plugrad\.Tensor"):
            DTensor.from_local(x, mesh, [R])
        with pytest.raises(TypeError, match="from_local or distribute_tensor"):
            DTensor(plugrad.ones(2))
        with pytest.raises(ValueError, match="reduce_op must be one of"):
            Partial("median")
        with pytest.raises(RuntimeError, match="must not be Partial"):
            distribute_tensor(plugrad.ones(2), mesh, [P])
        with pytest.raises(RuntimeError, match=r"got mixed plugrad\.Tensor and DTensor"):
            x + plugrad.ones(4, 2)
        with pytest.raises(TypeError, match="collectives take the tensors of ranks"):
            dist.functional.all_reduce(x)

    _line(run)


def test_tensors_on_different_meshes_do_not_meet() -> None:
    def run() -> None:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        x = distribute_tensor(plugrad.ones(4), mesh["a"], [Shard(0)])
        y = distribute_tensor(plugrad.ones(4), mesh["b"], [Shard(0)])
        with pytest.raises(RuntimeError, match="must be on one mesh"):
            x + y

    dist.run_ranks(run, 4)
