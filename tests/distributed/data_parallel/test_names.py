"""Names that PyTorch's programs import, collectives with its arguments, and shares of data sets."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
import plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks as default
import plugrad.distributed.nn.functional as F
from plugrad import nn
from plugrad.utils.data import DistributedSampler
from tests.distributed.training import agree, values


def test_modules_are_imported_by_the_names_of_pytorch() -> None:
    import plugrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook as power
    import plugrad.distributed.optim
    from plugrad.distributed.algorithms import Join as same
    from plugrad.distributed.algorithms.join import Join, Joinable, JoinHook
    from plugrad.nn.parallel import DistributedDataParallel
    from plugrad.nn.parallel.distributed import DistributedDataParallel as again
    from plugrad.nn.parallel.distributed import _MixedPrecision

    assert again is DistributedDataParallel
    assert _MixedPrecision(plugrad.float16).reduce_dtype is None
    import plugrad.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook as zero
    import plugrad.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook as local
    import plugrad.distributed.algorithms.model_averaging.averagers as averagers

    assert callable(zero.hook_with_zero_step)
    assert callable(local.post_localSGD_hook)
    assert callable(averagers.PeriodicModelAverager)
    assert same is Join
    assert issubclass(DistributedDataParallel, Joinable)
    assert callable(JoinHook.main_hook)
    assert callable(default.fp16_compress_hook)
    assert callable(power.powerSGD_hook)
    assert issubclass(plugrad.distributed.optim.ZeroRedundancyOptimizer, Joinable)


def test_programs_that_import_torch_find_the_same() -> None:
    lookup = pytest.importorskip("plugrad_as_torch.lookup")
    ddp = nn.parallel.DistributedDataParallel
    assert lookup.find("torch.nn.parallel", "DistributedDataParallel") is ddp
    assert lookup.find("torch.nn.parallel.distributed", "DistributedDataParallel") is ddp
    from plugrad.nn.parallel.distributed import _MixedPrecision

    assert lookup.find("torch.nn.parallel.distributed", "_MixedPrecision") is _MixedPrecision
    assert lookup.find("torch.distributed", "GradBucket") is dist.GradBucket
    assert lookup.find("torch.distributed.nn.functional", "all_gather") is F.all_gather
    hooks = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
    assert lookup.find(hooks, "fp16_compress_hook") is default.fp16_compress_hook


def test_hooks_are_the_first_thing_that_a_program_may_import() -> None:
    code = "import plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks as default"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nn.parallel, "distributed_package", lambda: None)
    nn.parallel.__dict__.pop("DistributedDataParallel", None)
    with pytest.raises(ImportError, match="pip install plugrad-distributed"):
        nn.parallel.DistributedDataParallel  # noqa: B018 - it is looked up
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        nn.parallel.other  # noqa: B018 - it is looked up
    places = importlib.import_module("plugrad_nn.nn.parallel.distributed")
    monkeypatch.setattr(places, "distributed_package", lambda: None)
    with pytest.raises(ImportError, match="_MixedPrecision is in a package of its own"):
        places._MixedPrecision  # noqa: B018 - it is looked up
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        places.other  # noqa: B018 - it is looked up


RANKS = 3


def own(seed: int = 0) -> Any:
    return values(10 * seed + dist.get_rank(), 2).requires_grad_()


def of(rank: int, seed: int = 0) -> Any:
    return values(10 * seed + rank, 2)


def each(function: Any) -> list[Any]:
    """By rank, what a function gives as arrays."""
    return dist.run_ranks(lambda: [x.detach().numpy() for x in function()], RANKS)


def test_gather_gives_all_to_one_and_gradients_to_all() -> None:
    def program() -> Any:
        x = own()
        found = F.gather(x, 1)
        sum(part.sum() * (number + 1) for number, part in enumerate(found)).backward()
        return *found, x.grad

    for rank, (*found, grad) in enumerate(each(program)):
        agree(found, [of(r).numpy() * (rank == 1) for r in range(RANKS)])
        agree([grad], [plugrad.full((2,), rank + 1.0).numpy()])


def test_all_gather_gives_all_to_all() -> None:
    def program() -> Any:
        x = own()
        found = F.all_gather(x)
        (found[0] * (dist.get_rank() + 1)).sum().backward()
        return *found, x.grad

    for rank, (*found, grad) in enumerate(each(program)):
        agree(found, [of(r).numpy() for r in range(RANKS)])
        agree([grad], [plugrad.full((2,), 6.0 * (rank == 0)).numpy()])


def test_scatter_gives_each_its_part_and_the_source_all_gradients() -> None:
    def program() -> Any:
        tensors = [own(seed) for seed in range(RANKS)]
        found = F.scatter(tensors, 2)
        (found * (dist.get_rank() + 1)).sum().backward()
        return found, *(tensor.grad for tensor in tensors)

    for rank, (found, *grads) in enumerate(each(program)):
        agree([found], [of(2, rank).numpy()])
        agree(grads, [plugrad.full((2,), (r + 1.0) * (rank == 2)).numpy() for r in range(RANKS)])


@pytest.mark.parametrize("name", ["broadcast", "reduce", "all_reduce"])
def test_results_and_gradients_of_one_tensor(name: str) -> None:
    def program() -> Any:
        x = own()
        found = getattr(F, name)(x, *([1] if name != "all_reduce" else []))
        (found * (dist.get_rank() + 1)).sum().backward()
        return found, x.grad

    total = sum(of(r) for r in range(RANKS))
    for rank, (found, grad) in enumerate(each(program)):
        value, slope = {
            "broadcast": (of(1), 6.0 * (rank == 1)),
            "reduce": (total * (rank == 1), 2.0),
            "all_reduce": (total, 6.0),
        }[name]
        agree([found, grad], [value.numpy(), plugrad.full((2,), slope).numpy()])


def test_reduce_scatter_and_all_to_all_write_to_their_outputs_as_well() -> None:
    def program() -> Any:
        tensors = [own(seed) for seed in range(RANKS)]
        out = plugrad.zeros(2, dtype=plugrad.float64)
        found = F.reduce_scatter(out, tensors)
        outs = [plugrad.zeros(2, dtype=plugrad.float64) for _ in range(RANKS)]
        every = F.all_to_all(outs, tensors)
        (found.sum() + every[0].sum() * (dist.get_rank() + 1)).backward()
        assert plugrad.equal(out, found)
        assert all(map(plugrad.equal, outs, every))
        return found, *every, *(tensor.grad for tensor in tensors)

    for rank, (found, *rest) in enumerate(each(program)):
        agree([found], [sum(of(r, rank) for r in range(RANKS)).numpy()])
        agree(rest[:RANKS], [of(r, rank).numpy() for r in range(RANKS)])
        slopes = [1.0 + (r + 1) * (rank == 0) for r in range(RANKS)]
        agree(rest[RANKS:], [plugrad.full((2,), slope).numpy() for slope in slopes])


def test_all_to_all_single_takes_parts_of_several_sizes() -> None:
    def program() -> Any:
        rank = dist.get_rank()
        x = plugrad.full((3,), float(rank), dtype=plugrad.float64).requires_grad_()
        out = plugrad.zeros(rank * RANKS, dtype=plugrad.float64)
        found = F.all_to_all_single(out, x, [rank] * RANKS, [0, 1, 2])
        found.sum().backward()
        return found, x.grad

    for rank, (found, grad) in enumerate(each(program)):
        assert found.tolist() == [float(r) for r in range(RANKS) for _ in range(rank)]
        assert grad.tolist() == [1.0] * 3


def test_outputs_of_another_size_raise() -> None:
    def program() -> None:
        x = plugrad.ones(2)
        with pytest.raises(ValueError, match="output must have 2 elements, got 3"):
            F.reduce_scatter(plugrad.ones(3), [x, x])

    dist.run_ranks(program, 2)


@pytest.mark.parametrize("drop_last", [False, True])
def test_samplers_ask_the_default_group(drop_last: bool) -> None:
    def program() -> Any:
        return list(DistributedSampler(range(7), shuffle=False, drop_last=drop_last))

    expected = [[0, 3], [1, 4], [2, 5]] if drop_last else [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert dist.run_ranks(program, 3) == expected


def test_samplers_shuffle_alike_on_all_ranks() -> None:
    def program() -> Any:
        sampler = DistributedSampler(range(8), seed=3)
        first = list(sampler)
        sampler.set_epoch(1)
        return first, list(sampler)

    (a, b), (c, d) = dist.run_ranks(program, 2)
    assert sorted(a + c) == sorted(b + d) == list(range(8))
    assert a + c != b + d


def test_samplers_without_a_group_need_their_numbers() -> None:
    for given in ({}, {"num_replicas": 2}, {"rank": 0}):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            DistributedSampler(range(3), **given)
    assert list(DistributedSampler(range(3), 3, 1)) == list(DistributedSampler(range(3), 3, 1))
