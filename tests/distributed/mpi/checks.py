"""What programs under mpiexec compute with every collective: functions that each rank calls, with
plain lists as results. Run as a program, it reports them all."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import distributed as dist
from plugrad.distributed import functional as fn

__all__ = ["CHECKS"]

SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (3, 5), (0,), (2, 0, 3), (100_003,)]
FLOATS = ["float64", "float32", "float16", "bfloat16"]
STORED = ["float8_e4m3fn", "float8_e5m2"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = [*FLOATS, *STORED, *COMPLEX, *INTEGERS, "bool"]

CHECKS: dict[str, Callable[[], Any]] = {}


def check(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a function to the table, once for each of the arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        if not arguments:
            CHECKS[name] = function
        for argument in arguments:
            CHECKS[f"{name} {argument}"] = lambda argument=argument: function(argument)
        return function

    return add


def given(shape: tuple[int, ...] = (6,), dtype: str = "float64", rank: int | None = None) -> Any:
    """The tensor of a rank: small whole numbers, so that sums and products are exact."""
    rank = dist.get_rank() if rank is None else rank
    count = 1
    for length in shape:
        count *= length
    whole = (plugrad.arange(count) * 3 + rank * 5) % 4
    if dtype == "bool":
        return (whole % 2 == 0).reshape(shape)
    if dtype.startswith("complex"):
        return (
            plugrad.complex(whole.double(), whole.double() - rank)
            .reshape(shape)
            .to(getattr(plugrad, dtype))
        )
    return whole.reshape(shape).double().to(getattr(plugrad, dtype))


def plain(value: Any) -> Any:
    """Tensors as what JSON can hold, with their dtypes."""
    if isinstance(value, plugrad.Tensor):
        found = value.detach()
        if found.dtype.is_complex:
            found = plugrad.view_as_real(found)
        if found.numel() > 1000:
            found = plugrad.stack([found[::997].double().sum(), found.double().sum()])
        return [str(value.dtype), list(value.shape), found.double().tolist()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def ranks() -> range:
    return range(dist.get_world_size())


@check(*SHAPES)
def all_reduce_of_shape(shape: Any) -> Any:
    x = given(shape)
    dist.all_reduce(x)
    return x


@check(*DTYPES)
def sum_of(dtype: Any) -> Any:
    if dtype in STORED:
        # PyTorch's float8 dtypes are for storage: they are moved but not reduced.
        x = given(dtype=dtype)
        dist.broadcast(x, 1)
        return x
    x = given(dtype=dtype)
    dist.all_reduce(x)
    return x


@check(*[d for d in DTYPES if d not in STORED])
def product_of(dtype: Any) -> Any:
    x = given(dtype=dtype)
    dist.all_reduce(x, "product")
    return x


@check(*[d for d in DTYPES if d not in STORED + COMPLEX])
def extremes_of(dtype: Any) -> Any:
    least, most = given(dtype=dtype), given(dtype=dtype)
    dist.all_reduce(least, dist.ReduceOp.MIN)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return least, most


@check(*INTEGERS, "bool")
def bits_of(dtype: Any) -> Any:
    found = []
    for op in ("band", "bor", "bxor"):
        x = given(dtype=dtype)
        dist.all_reduce(x, op)
        found.append(x)
    return found


@check(*FLOATS, *COMPLEX)
def mean_of(dtype: Any) -> Any:
    x = given(dtype=dtype) * len(ranks())
    dist.all_reduce(x, dist.ReduceOp.AVG)
    return x


@check(*DTYPES)
def moved_by_every_collective(dtype: Any) -> Any:
    size, rank = len(ranks()), dist.get_rank()
    x = given((5,), dtype)
    row = given((5 * size,), dtype)
    gathered = [given((5,), dtype, 9) for _ in ranks()]
    dist.all_gather(gathered, x)
    into = given((size, 5), dtype, 9)
    dist.all_gather_into_tensor(into, x)
    swapped = given((5 * size,), dtype, 9)
    dist.all_to_all_single(swapped, row)
    part = given((5,), dtype, 9)
    dist.scatter(part, list(row.reshape(size, 5)) if rank == 1 else None, src=1)
    at_root = [given((5,), dtype, 9) for _ in ranks()] if rank == 1 else None
    dist.gather(x, at_root, dst=1)
    return gathered, into, swapped, part, at_root


@check(*FLOATS[:3], "int64", "bool", "complex64")
def scattered_sums_of(dtype: Any) -> Any:
    size = len(ranks())
    out, listed = given((3,), dtype, 9), given((3,), dtype, 9)
    dist.reduce_scatter_tensor(out, given((size * 3,), dtype))
    dist.reduce_scatter(listed, list(given((size, 3), dtype)))
    return out, listed


@check(*FLOATS[:3], "int32", "bool")
def sum_at_one_rank_of(dtype: Any) -> Any:
    x = given(dtype=dtype)
    dist.reduce(x, dst=1)
    return x if dist.get_rank() == 1 else None


@check(*SHAPES)
def broadcast_of_shape(shape: Any) -> Any:
    x = given(shape)
    dist.broadcast(x, src=1)
    return x


@check()
def parts_of_several_sizes() -> Any:
    """Rank r sends s + r elements to rank s, none of them from 0 to 0."""
    rank, size = dist.get_rank(), len(ranks())
    sent = [s + rank for s in ranks()]
    got = [rank + s for s in ranks()]
    out = plugrad.zeros(sum(got), dtype=plugrad.float64)
    dist.all_to_all_single(out, given((sum(sent),)), got, sent)
    outs = [plugrad.zeros(n) for n in got]
    dist.all_to_all(outs, [given((n,), "float32") for n in sent])
    uneven = [plugrad.zeros(r) for r in ranks()]
    dist.all_gather(uneven, given((rank,), "float32"))
    return out, outs, uneven, size


@check()
def work_that_is_waited_for_later() -> Any:
    tensors = [given((size,)) for size in (1, 1000, 100_000)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    other = given((3,))
    dist.all_reduce(other)
    for work in reversed(works):
        assert work.wait()
        assert work.is_completed()
    return tensors, other


@check()
def work_that_nobody_waits_for_goes_on() -> Any:
    x = given((1_000_000,))
    work = dist.all_reduce(x, async_op=True)
    request = work._request
    assert request is not None
    end = time.monotonic() + 30
    # Testing whether it is complete would let it continue.
    while request.needs_asking and work._request is not None:
        assert time.monotonic() < end
        time.sleep(0.005)
    work.wait()
    return x


@check()
def messages_in_a_ring() -> Any:
    rank, size = dist.get_rank(), len(ranks())
    out = plugrad.zeros(6, dtype=plugrad.float64)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, given(), (rank + 1) % size),
            dist.P2POp(dist.irecv, out, (rank - 1) % size),
        ]
    )
    for work in works:
        work.wait()
    return out


@check()
def messages_of_any_rank_by_tags() -> Any:
    rank = dist.get_rank()
    if rank != 0:
        dist.send(given((4,), "float16"), 0, tag=2)
        dist.send(given((4,), "int64"), 0, tag=1)
        return None
    found = []
    for _ in ranks()[1:]:
        number = plugrad.zeros(4, dtype=plugrad.int64)
        source = dist.recv(number, tag=1)
        half = plugrad.zeros(4, dtype=plugrad.float16)
        assert dist.recv(half, source, tag=2) == source
        found.append((source, number.tolist(), half.tolist()))
    return sorted(found)


@check()
def objects_of_all_ranks() -> Any:
    rank, size = dist.get_rank(), len(ranks())
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, {"rank": rank, "text": "é" * rank * 1000})
    chosen = [["of", rank], rank]
    dist.broadcast_object_list(chosen, src=1)
    part: list[Any] = [None]
    dist.scatter_object_list(part, [f"for {r}" for r in ranks()] if rank == 0 else None, src=0)
    at_root = [None] * size if rank == 1 else None
    dist.gather_object((rank,), at_root, dst=1)
    return everyone, chosen, part, at_root


@check()
def groups_of_some_ranks() -> Any:
    size = len(ranks())
    found: list[Any] = []
    pairs = [[first, first + 1] for first in range(0, size - 1, 2)]
    groups = [*map(dist.new_group, pairs), dist.new_group([size - 1])]
    everyone = dist.new_group()
    for group in (*groups, everyone):
        if dist.get_rank(group) < 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dist.all_reduce(given(), group=group)
            continue
        x = given((5,), "float16")
        dist.all_reduce(x, group=group)
        last = given((5,))
        dist.broadcast(last, group=group, group_src=dist.get_world_size(group) - 1)
        found.append((dist.get_process_group_ranks(group), x, last))
        dist.barrier(group)
    for group in groups:
        dist.destroy_process_group(group)
    dist.monitored_barrier(timeout=30)
    return found


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "all_reduce": fn.all_reduce,
    "all_reduce max": lambda x: fn.all_reduce(x, "max"),
    "all_reduce product": lambda x: fn.all_reduce(x + 1, "product"),
    "reduce": lambda x: fn.reduce(x, 1),
    "broadcast": lambda x: fn.broadcast(x, 1),
    "all_gather": fn.all_gather,
    "reduce_scatter": fn.reduce_scatter,
    "all_to_all_single": fn.all_to_all_single,
    "gather": lambda x: fn.gather(x, 0),
    "scatter": lambda x: fn.scatter(x, 1, 0, (x.shape[0] // dist.get_world_size(), 3)),
}


@check(*GRADIENTS)
def gradient_of(name: Any) -> Any:
    x = given((4, 3)).requires_grad_()
    y = GRADIENTS[name](x)
    weights = plugrad.arange(y.numel(), dtype=y.dtype).reshape(y.shape) + dist.get_rank()
    (y * weights).sum().backward()
    return y, x.grad


@check()
def gradient_of_messages() -> Any:
    rank = dist.get_rank()
    x = given((4,)).requires_grad_()
    if rank == 0:
        fn.send(x * 2, 1).backward()
    elif rank == 1:
        (fn.recv(x, 0) * plugrad.arange(4)).sum().backward()
    return x.grad


def results() -> dict[str, Any]:
    """All checks, one after the other; errors as text."""
    found = {}
    for name, function in CHECKS.items():
        try:
            found[name] = plain(function())
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    from tests.distributed.under_mpi import report

    dist.init_process_group("mpi", timeout=20)
    report(results())
    dist.destroy_process_group()
