"""Copies from one rank to others: `broadcast`, `all_gather`, `gather`, `scatter`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.arrays import empty_like, namespace_of, readable, rows, scattered, writable
from plugrad_distributed.distributed import functional
from plugrad_distributed.distributed.calls import (
    check_alike,
    check_list,
    check_sizes,
    check_tensor,
    described,
    finished,
    in_terms_of,
    is_watched,
    list_of_root,
    member,
    over,
    root_of,
)
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work

__all__ = ["all_gather", "all_gather_into_tensor", "broadcast", "gather", "scatter"]


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the tensor of one rank to all others.

    Args:
        tensor: of the same shape and dtype on all ranks.
        src: the rank, by its global number; `group_src` is its number in the group.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     x = plugrad.tensor([float(dist.get_rank())])
    ...     dist.broadcast(x, src=1)
    ...     return x
    >>> dist.run_ranks(program, 2)
    [tensor([1.]), tensor([1.])]
    """
    tensor = check_tensor(tensor, "broadcast", "tensor")
    ranks = member(group, "broadcast")
    if ranks is None:
        return None
    root = root_of(ranks, src, group_src, "src")
    what = described("broadcast", tensor, f"from {ranks.ranks[root]}")
    if is_watched(tensor):
        with plugrad.no_grad():
            found = functional.broadcast(tensor, ranks.ranks[root], ranks)
        return in_terms_of(found, tensor, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    if ranks.size() == 1:
        return finished(over(ranks, what, [tensor]), async_op)
    if ranks.rank() == root:
        array, written = readable(carrier, tensor), None
    else:
        array, written = writable(carrier, tensor)
    work = ranks.start(what, carrier, lambda: carrier.broadcast(array, root), written, [tensor])
    return finished(work, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Concatenate the tensors of all ranks in one tensor, on each rank.

    Args:
        output_tensor: `size` times as many elements as the input; of shape (size * n, ...) or
            (size, n, ...).

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     out = plugrad.empty(2)
    ...     dist.all_gather_into_tensor(out, plugrad.tensor([float(dist.get_rank())]))
    ...     return out
    >>> dist.run_ranks(program, 2)
    [tensor([0., 1.]), tensor([0., 1.])]
    """
    out = check_tensor(output_tensor, "all_gather_into_tensor", "output_tensor")
    tensor = check_tensor(input_tensor, "all_gather_into_tensor", "input_tensor")
    ranks = member(group, "all_gather_into_tensor")
    if ranks is None:
        return None
    check_sizes("all_gather_into_tensor", "output_tensor", out, "input_tensor", tensor, ranks)
    what = described("all_gather_into_tensor", tensor)
    if is_watched(tensor) or is_watched(out):
        with plugrad.no_grad():
            found = functional.all_gather(tensor.reshape(-1), 0, ranks).reshape(out.shape)
        return in_terms_of(found, out, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    array, (buffer, written) = readable(carrier, tensor), writable(carrier, out)
    work = ranks.start(what, carrier, lambda: carrier.all_gather(buffer, array), written, [out])
    return finished(work, async_op)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensor of rank r to the r-th tensor of a list, on all ranks.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     outs = [plugrad.empty(1), plugrad.empty(1)]
    ...     dist.all_gather(outs, plugrad.tensor([float(dist.get_rank())]))
    ...     return outs
    >>> dist.run_ranks(program, 2)[0]
    [tensor([0.]), tensor([1.])]
    """
    tensor = check_tensor(tensor, "all_gather", "tensor")
    ranks = member(group, "all_gather")
    if ranks is None:
        return None
    outs = check_list(tensor_list, "all_gather", "tensor_list", ranks.size())
    what = described("all_gather", tensor)
    if any(map(is_watched, (tensor, *outs))):
        with plugrad.no_grad():
            found = functional.all_gather(tensor.reshape(1, -1), 0, ranks)
            for out, row in zip(outs, found, strict=True):
                out.copy_(row.reshape(out.shape))
        return finished(over(ranks, what, outs), async_op)
    if len({out.numel() for out in outs}) > 1:
        return finished(_gather_uneven(outs, tensor, ranks, what), async_op)
    check_alike("all_gather", "tensor_list", outs, tensor)
    carrier = ranks.carrier(tensor.device.type)
    array = readable(carrier, tensor)
    buffer = empty_like(array, (ranks.size(), tensor.numel()))
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.all_gather(buffer, array),
        scattered(buffer, outs, carrier),
        outs,
    )
    return finished(work, async_op)


def _gather_uneven(
    outs: Sequence[Tensor], tensor: Tensor, ranks: ProcessGroup, what: object
) -> Work:
    """`all_gather` of tensors that differ in size: each rank sends its own to all others."""
    if tensor.numel() != outs[ranks.rank()].numel():
        raise ValueError(
            f"all_gather(): tensor_list[{ranks.rank()}] must have as many elements as tensor "
            f"({tensor.numel()}), got {outs[ranks.rank()].numel()}"
        )
    carrier = ranks.carrier(tensor.device.type)
    array = readable(carrier, tensor).reshape(-1)
    counts = [out.numel() for out in outs]
    buffer = empty_like(array, (sum(counts),))
    sent = namespace_of(array).tile(array, ranks.size())
    ends = list(itertools.accumulate(counts, initial=0))
    parts = [buffer[a:b] for a, b in itertools.pairwise(ends)]
    return ranks.start(
        what,
        carrier,
        lambda: carrier.all_to_all(buffer, sent, counts, [array.size] * ranks.size()),
        scattered(parts, outs, carrier),
        outs,
        alike=f"all_gather({tensor.dtype}, of several sizes)",
    )


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensor of rank r to the r-th tensor of a list, on the rank `dst`. Only that rank
    passes a list.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     mine = plugrad.tensor([float(dist.get_rank())])
    ...     outs = [plugrad.empty(1), plugrad.empty(1)] if dist.get_rank() == 0 else None
    ...     dist.gather(mine, outs, dst=0)
    ...     return outs
    >>> dist.run_ranks(program, 2)
    [[tensor([0.]), tensor([1.])], None]
    """
    tensor = check_tensor(tensor, "gather", "tensor")
    ranks = member(group, "gather")
    if ranks is None:
        return None
    root = root_of(ranks, dst, group_dst, "dst")
    own = ranks.rank() == root
    outs = list_of_root("gather", "gather_list", gather_list, own, ranks)
    check_alike("gather", "gather_list", outs, tensor)
    what = described("gather", tensor, f"to {ranks.ranks[root]}")
    if any(map(is_watched, (tensor, *outs))):
        with plugrad.no_grad():
            found = functional.gather(tensor.reshape(1, -1), ranks.ranks[root], 0, ranks)
            for out, row in zip(outs, found, strict=True):
                out.copy_(row.reshape(out.shape))
        return finished(over(ranks, what, outs), async_op)
    carrier = ranks.carrier(tensor.device.type)
    array = readable(carrier, tensor)
    buffer = empty_like(array, (ranks.size(), tensor.numel())) if own else None
    finish = scattered(buffer, outs, carrier) if own else None
    work = ranks.start(what, carrier, lambda: carrier.gather(buffer, array, root), finish, outs)
    return finished(work, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write the r-th tensor of a list to the tensor of rank r. Only the rank `src` passes a
    list.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> def program():
    ...     out = plugrad.empty(1)
    ...     parts = [plugrad.ones(1), plugrad.zeros(1)] if dist.get_rank() == 0 else None
    ...     dist.scatter(out, parts, src=0)
    ...     return out
    >>> dist.run_ranks(program, 2)
    [tensor([1.]), tensor([0.])]
    """
    tensor = check_tensor(tensor, "scatter", "tensor")
    ranks = member(group, "scatter")
    if ranks is None:
        return None
    root = root_of(ranks, src, group_src, "src")
    own = ranks.rank() == root
    sources = list_of_root("scatter", "scatter_list", scatter_list, own, ranks)
    check_alike("scatter", "scatter_list", sources, tensor)
    what = described("scatter", tensor, f"from {ranks.ranks[root]}")
    if any(map(is_watched, (tensor, *sources))):
        with plugrad.no_grad():
            whole = plugrad.stack([x.reshape(-1) for x in sources]) if own else tensor
            found = functional.scatter(whole, ranks.ranks[root], 0, (1, tensor.numel()), ranks)
        return in_terms_of(found.reshape(tensor.shape), tensor, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    whole_array = rows(sources, carrier) if own else None
    buffer, written = writable(carrier, tensor)
    work = ranks.start(
        what, carrier, lambda: carrier.scatter(buffer, whole_array, root), written, [tensor]
    )
    return finished(work, async_op)
