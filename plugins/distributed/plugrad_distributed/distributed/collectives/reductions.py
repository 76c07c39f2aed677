"""Reductions over ranks: `all_reduce`, `reduce`, `reduce_scatter`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.plugins.tracing import memory_to_write
from plugrad_distributed.arrays import readable, writable
from plugrad_distributed.distributed import functional
from plugrad_distributed.distributed.calls import (
    after,
    check_alike,
    check_list,
    check_reduction,
    check_sizes,
    check_tensor,
    described,
    finished,
    in_terms_of,
    is_watched,
    member,
    over,
    root_of,
)
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.groups.world import PROCESS, WORLDS, current_world
from plugrad_distributed.reduce_op import ReduceOp

SUM = ReduceOp.SUM

__all__ = ["all_reduce", "averaged", "reduce", "reduce_scatter", "reduce_scatter_tensor"]


def all_reduce(
    tensor: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the tensors of all ranks elementwise, in place on every rank.

    Args:
        tensor: of the same shape and dtype on all ranks.
        op: the reduction: a `ReduceOp`, or its name.
        group: the ranks; all by default.
        async_op: whether to return at once, with a `Work` to wait for.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     x = plugrad.ones(2) * dist.get_rank()
    ...     dist.all_reduce(x, dist.ReduceOp.MAX)
    ...     return x
    >>> dist.run_ranks(program, 3)[0]
    tensor([2., 2.])
    """
    if op is SUM and not async_op:
        # The most common calls. In the time of small ones, each function that they enter shows.
        if group is None:
            group = (current_world() if WORLDS else PROCESS).default
        if type(group) is ProcessGroup and (sum_now := group.sum_now) is not None:
            memory = memory_to_write(tensor)
            if memory is not None:
                sum_now(memory)
                return None
    return _all_reduce(tensor, op, group, async_op)


def _all_reduce(tensor: Tensor, op: ReduceOp | str, group: Any, async_op: bool) -> Work | None:
    """`all_reduce` of any tensor."""
    tensor = check_tensor(tensor, "all_reduce", "tensor")
    op = check_reduction(op, tensor, "all_reduce")
    ranks = member(group, "all_reduce")
    if ranks is None:
        return None
    what = described("all_reduce", tensor, op.value)
    if is_watched(tensor):
        with plugrad.no_grad():
            found = functional.all_reduce(tensor, op, ranks)
        return in_terms_of(found, tensor, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    if ranks.size() == 1:
        return finished(over(ranks, what, [tensor]), async_op)
    array, written = writable(carrier, tensor)
    plain, finish = averaged(op, array, ranks.size())
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.all_reduce(array, array, plain),
        after(finish, written),
        [tensor],
    )
    return finished(work, async_op)


def averaged(op: ReduceOp, array: Any, size: int) -> tuple[ReduceOp, Any]:
    """The reduction for carriers, and a function that turns the sum into the average, or None."""
    if op is not ReduceOp.AVG:
        return op, None

    def divide() -> None:
        array[...] = array / array.dtype.type(size)

    return ReduceOp.SUM, divide


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce the tensors of all ranks elementwise into the tensor of one rank; the others keep
    theirs.

    Args:
        dst: the rank, by its global number; `group_dst` is its number in the group.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     x = plugrad.ones(1)
    ...     dist.reduce(x, dst=0)
    ...     return x
    >>> dist.run_ranks(program, 2)
    [tensor([2.]), tensor([1.])]
    """
    tensor = check_tensor(tensor, "reduce", "tensor")
    op = check_reduction(op, tensor, "reduce")
    ranks = member(group, "reduce")
    if ranks is None:
        return None
    root = root_of(ranks, dst, group_dst, "dst")
    what = described("reduce", tensor, f"{op.value}, to {ranks.ranks[root]}")
    if is_watched(tensor):
        with plugrad.no_grad():
            found = functional.reduce(tensor, ranks.ranks[root], op, ranks)
        if ranks.rank() != root:
            return finished(over(ranks, what, [tensor]), async_op)
        return in_terms_of(found, tensor, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    finish = written = None
    if ranks.rank() == root:
        array, written = writable(carrier, tensor)
        plain, finish = averaged(op, array, ranks.size())
    else:
        array = readable(carrier, tensor)
        plain, _ = averaged(op, array, ranks.size())
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.reduce(array, array, root, plain),
        after(finish, written),
        [tensor],
    )
    return finished(work, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the tensors of all ranks elementwise, and write part r of the result to `output` of
    rank r.

    Args:
        input: `size` times as many elements as the output; of shape (size * n, ...) or
            (size, n, ...).

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     out = plugrad.empty(1)
    ...     dist.reduce_scatter_tensor(out, plugrad.tensor([1.0, 2.0]))
    ...     return out
    >>> dist.run_ranks(program, 2)
    [tensor([2.]), tensor([4.])]
    """
    out = check_tensor(output, "reduce_scatter_tensor", "output")
    tensor = check_tensor(input, "reduce_scatter_tensor", "input")
    op = check_reduction(op, tensor, "reduce_scatter_tensor")
    ranks = member(group, "reduce_scatter_tensor")
    if ranks is None:
        return None
    check_sizes("reduce_scatter_tensor", "input", tensor, "output", out, ranks)
    return _reduce_scatter("reduce_scatter_tensor", out, tensor, op, ranks, async_op)


def _reduce_scatter(
    function: str, out: Tensor, tensor: Tensor, op: ReduceOp, ranks: ProcessGroup, async_op: bool
) -> Work | None:
    what = described(function, tensor, op.value)
    if is_watched(tensor) or is_watched(out):
        with plugrad.no_grad():
            found = functional.reduce_scatter(tensor.reshape(-1), 0, op, ranks)
        return in_terms_of(found.reshape(out.shape), out, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    array, (buffer, written) = readable(carrier, tensor), writable(carrier, out)
    plain, finish = averaged(op, buffer, ranks.size())
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.reduce_scatter(buffer, array, plain),
        after(finish, written),
        [out],
    )
    return finished(work, async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the lists of all ranks elementwise, and write the r-th tensor of the result to
    `output` of rank r.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     out = plugrad.empty(1)
    ...     dist.reduce_scatter(out, [plugrad.ones(1), plugrad.zeros(1)])
    ...     return out
    >>> dist.run_ranks(program, 2)
    [tensor([2.]), tensor([0.])]
    """
    out = check_tensor(output, "reduce_scatter", "output")
    op = check_reduction(op, out, "reduce_scatter")
    ranks = member(group, "reduce_scatter")
    if ranks is None:
        return None
    inputs = check_list(input_list, "reduce_scatter", "input_list", ranks.size())
    check_alike("reduce_scatter", "input_list", inputs, out)
    with plugrad.no_grad():
        whole = plugrad.cat([tensor.reshape(-1) for tensor in inputs])
    return _reduce_scatter("reduce_scatter", out, whole, op, ranks, async_op)
