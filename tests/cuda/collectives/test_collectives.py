"""Collectives of GPUs move and reduce the same as the host's. The oracle is the same function on
the CPU's tensors, which the carrier of threads moves with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad import nn, optim
from plugrad.distributed import functional as fn
from tests.cuda.collectives.conftest import Ranks
from tests.cuda.collectives.fake_nccl import FakeNccl

DTYPES = ["float32", "float64", "float16", "complex64", "int16", "int64", "uint8", "bool"]


def given(device: Any, shape: tuple[int, ...] = (6,), dtype: str = "float32") -> Any:
    """The tensor of a rank: small whole numbers, so that sums and products are exact."""
    count = 1
    for length in shape:
        count *= length
    whole = (plugrad.arange(count) * 3 + dist.get_rank() * 5) % 4
    return whole.reshape(shape).to(getattr(plugrad, dtype)).to(device)


def plain(value: Any) -> Any:
    if isinstance(value, plugrad.Tensor):
        return [str(value.dtype), value.detach().cpu().tolist()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def check(ranks: Ranks, function: Callable[..., Any], *arguments: Any) -> None:
    """The function must give on GPUs what it gives on the host."""

    def run() -> Any:
        found = function(f"cuda:{dist.get_rank()}", *arguments)
        return plain(found), plain(function("cpu", *arguments))

    for outcome in ranks(run):
        if isinstance(outcome, BaseException):
            raise outcome
        found, expected = outcome
        assert found == expected


def moved(device: Any, dtype: str) -> Any:
    size, rank = dist.get_world_size(), dist.get_rank()
    x, row = given(device, (5,), dtype), given(device, (5 * size,), dtype)
    copied = given(device, (2, 3), dtype)
    dist.broadcast(copied, 1)
    gathered = [given(device, (5,), dtype) for _ in range(size)]
    dist.all_gather(gathered, x)
    into = given(device, (size, 5), dtype)
    dist.all_gather_into_tensor(into, x)
    swapped = given(device, (5 * size,), dtype)
    dist.all_to_all_single(swapped, row)
    part = given(device, (5,), dtype)
    dist.scatter(part, list(row.reshape(size, 5)) if rank == 1 else None, src=1)
    at_root = [given(device, (5,), dtype) for _ in range(size)] if rank == 1 else None
    dist.gather(x, at_root, dst=1)
    return copied, gathered, into, swapped, part, at_root


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_moved(ranks: Ranks, dtype: str) -> None:
    check(ranks, moved, dtype)


def reduced(device: Any, dtype: str, ops: list[str]) -> Any:
    found = []
    for op in ops:
        x, at_root, part = (given(device, (6,), dtype) for _ in range(3))
        dist.all_reduce(x, op)
        dist.reduce(at_root, 1, op)
        dist.reduce_scatter_tensor(part[:2], given(device, (6,), dtype), op)
        found += [x, part[:2], at_root if dist.get_rank() == 1 else None]
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_reduced(ranks: Ranks, dtype: str) -> None:
    ops = ["sum", "product"]
    if dtype != "complex64":
        ops += ["min", "max"]
    if dtype in ("int16", "int64", "uint8", "bool"):
        ops += ["band", "bor", "bxor"]
    else:
        ops += ["avg"]
    check(ranks, reduced, dtype, ops)


def uneven(device: Any) -> Any:
    size, rank = dist.get_world_size(), dist.get_rank()
    sent, got = [s + rank for s in range(size)], [rank + s for s in range(size)]
    out = plugrad.zeros(sum(got), device=device)
    dist.all_to_all_single(out, given(device, (sum(sent),)), got, sent)
    outs = [plugrad.zeros(r, device=device) for r in range(size)]
    dist.all_gather(outs, given(device, (rank,)))
    nothing = given(device, (0,))
    dist.all_reduce(nothing)
    return out, outs, nothing


def test_parts_of_several_sizes(ranks: Ranks) -> None:
    check(ranks, uneven)


def strided(device: Any) -> Any:
    size = dist.get_world_size()
    x = given(device, (3, 2)).T if dist.get_rank() == 1 else given(device, (2, 3))
    dist.all_reduce(x)
    out = plugrad.zeros(4, 2 * size, device=device).T
    dist.all_gather_into_tensor(out, given(device, (4, 2)).T)
    return x, out


def test_arrays_with_gaps_stay_on_the_gpu(nccl: FakeNccl, ranks: Ranks) -> None:
    check(ranks, strided)
    assert {name for name, _, _ in nccl.log} == {"allReduce", "allGather"}


def messages(device: Any) -> Any:
    rank, size = dist.get_rank(), dist.get_world_size()
    ring = plugrad.zeros(6, device=device)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, given(device), (rank + 1) % size),
            dist.P2POp(dist.irecv, ring, (rank - 1) % size),
        ]
    )
    for work in works:
        work.wait()
    direct = plugrad.zeros(6, device=device)
    source = None
    if rank == 0:
        dist.send(given(device), 2)
        dist.send(given(device) + 1, 2)
    elif rank == 2:
        dist.recv(direct, 0)
        source = dist.recv(direct, 0)
    return ring, direct, source


def test_messages_in_a_ring_and_in_a_row(ranks: Ranks) -> None:
    check(ranks, messages)


def both_send_first(device: Any) -> Any:
    rank, got = dist.get_rank(), plugrad.zeros(6, device=device)
    if rank < 2:
        work = dist.isend(given(device), 1 - rank)
        dist.recv(got, 1 - rank)
        assert work is not None
        work.wait()
    return got


def test_two_ranks_may_both_send_first(ranks: Ranks) -> None:
    check(ranks, both_send_first)


def in_groups(device: Any) -> Any:
    pair, last = dist.new_group([0, 2]), dist.new_group([1])
    x = given(device)
    mine = last if dist.get_rank() == 1 else pair
    dist.all_reduce(x, group=mine)
    y = given(device)
    dist.broadcast(y, group=mine, group_src=dist.get_world_size(mine) - 1)
    dist.barrier(mine)
    return x, y


def test_groups_of_some_ranks(ranks: Ranks) -> None:
    check(ranks, in_groups)


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "all_reduce": fn.all_reduce,
    "reduce": lambda x: fn.reduce(x, 1),
    "broadcast": lambda x: fn.broadcast(x, 1),
    "all_gather": fn.all_gather,
    "reduce_scatter": fn.reduce_scatter,
    "all_to_all_single": fn.all_to_all_single,
}


def gradient(device: Any, name: str) -> Any:
    x = given(device, (3, 2)).requires_grad_()
    y = GRADIENTS[name](x)
    (y * y).sum().backward()
    return y, x.grad


@pytest.mark.parametrize("name", GRADIENTS)
def test_collectives_with_gradients(ranks: Ranks, name: str) -> None:
    check(ranks, gradient, name)


def objects(device: Any) -> Any:
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, {"rank": dist.get_rank()})
    return everyone


def test_objects_go_by_the_host(ranks: Ranks) -> None:
    check(ranks, objects)


def trained(device: Any) -> Any:
    model = nn.Linear(3, 2).to(device)
    with plugrad.no_grad():
        for parameter in model.parameters():
            parameter.fill_(dist.get_rank())
    net = nn.parallel.DistributedDataParallel(model)
    optimizer = optim.SGD(net.parameters(), lr=0.25)
    for _ in range(2):
        optimizer.zero_grad()
        net(given(device, (4, 3))).sum().backward()
        optimizer.step()
    return list(model.parameters())


def test_data_parallel_training(ranks: Ranks) -> None:
    check(ranks, trained)
