"""Collectives that write to the tensors they get, by the names and arguments of
`torch.distributed`. Nothing of them is recorded for gradients; `plugrad.distributed.nn.functional`
has those that are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad_distributed.arrays import readable, rows, writable
from plugrad_distributed.carriers.carrier import Carrier
from plugrad_distributed.distributed import functional
from plugrad_distributed.distributed.calls import (
    after,
    check_list,
    check_reduction,
    check_tensor,
    described,
    finished,
    is_watched,
    member,
)
from plugrad_distributed.distributed.starting import GroupMember
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work, seconds
from plugrad_distributed.reduce_op import ReduceOp

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


def _over(group: ProcessGroup, what: object, results: Sequence[Tensor]) -> Work:
    """Work that is over already."""
    return Work(group, what, None, None, results)


def _in_terms_of(
    found: Tensor, out: Tensor, group: ProcessGroup, what: object, async_op: bool
) -> Work | None:
    """What an operator gave, written to where it belongs."""
    with plugrad.no_grad():
        out.copy_(found)
    return finished(_over(group, what, [out]), async_op)


def all_reduce(
    tensor: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Put the elements of all ranks together, in place.

    Args:
        tensor: of one shape and dtype on all ranks.
        op: how: a `ReduceOp`, or its name.
        group: the ranks; all by default.
        async_op: whether to return at once, with work to wait for.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     x = plugrad.ones(2) * dist.get_rank()
    ...     dist.all_reduce(x, dist.ReduceOp.MAX)
    ...     return x
    >>> dist.run_ranks(program, 3)[0]
    tensor([2., 2.])
    """
    tensor = check_tensor(tensor, "all_reduce", "tensor")
    op = check_reduction(op, tensor, "all_reduce")
    ranks = member(group, "all_reduce")
    if ranks is None:
        return None
    what = described("all_reduce", tensor, op.value)
    if is_watched(tensor):
        with plugrad.no_grad():
            found = functional.all_reduce(tensor, op, ranks)
        return _in_terms_of(found, tensor, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    if ranks.size() == 1:
        return finished(_over(ranks, what, [tensor]), async_op)
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
    """The reduction that carriers know, and what makes the average of a sum, or None."""
    if op is not ReduceOp.AVG:
        return op, None

    def divide() -> None:
        array[...] = array / array.dtype.type(size)

    return ReduceOp.SUM, divide


def _root(ranks: ProcessGroup, rank: int | None, in_group: int | None, name: str) -> int:
    """The number in the group of a source or destination, which is given by either number."""
    if rank is not None and in_group is not None:
        raise ValueError(f"Can't specify both {name} and group_{name}")
    if in_group is not None:
        if not 0 <= in_group < ranks.size():
            raise ValueError(
                f"group_{name} must be in the interval [0, {ranks.size() - 1}], got {in_group}"
            )
        return in_group
    return ranks.local(0 if rank is None else rank, name)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write the tensor of one rank to those of the others.

    Args:
        tensor: of one shape and dtype on all ranks.
        src: the rank, by its number among all; `group_src` is its number in the group.
    """
    tensor = check_tensor(tensor, "broadcast", "tensor")
    ranks = member(group, "broadcast")
    if ranks is None:
        return None
    root = _root(ranks, src, group_src, "src")
    what = described("broadcast", tensor, f"from {ranks.ranks[root]}")
    if is_watched(tensor):
        with plugrad.no_grad():
            found = functional.broadcast(tensor, ranks.ranks[root], ranks)
        return _in_terms_of(found, tensor, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    if ranks.size() == 1:
        return finished(_over(ranks, what, [tensor]), async_op)
    if ranks.rank() == root:
        array, written = readable(carrier, tensor), None
    else:
        array, written = writable(carrier, tensor)
    work = ranks.start(what, carrier, lambda: carrier.broadcast(array, root), written, [tensor])
    return finished(work, async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put the elements of all ranks together, in the tensor of one rank; the others keep theirs.

    Args:
        dst: the rank, by its number among all; `group_dst` is its number in the group.
    """
    tensor = check_tensor(tensor, "reduce", "tensor")
    op = check_reduction(op, tensor, "reduce")
    ranks = member(group, "reduce")
    if ranks is None:
        return None
    root = _root(ranks, dst, group_dst, "dst")
    what = described("reduce", tensor, f"{op.value}, to {ranks.ranks[root]}")
    if is_watched(tensor):
        with plugrad.no_grad():
            found = functional.reduce(tensor, ranks.ranks[root], op, ranks)
        if ranks.rank() != root:
            return finished(_over(ranks, what, [tensor]), async_op)
        return _in_terms_of(found, tensor, ranks, what, async_op)
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


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks, one behind the other, to one tensor.

    Args:
        output_tensor: `size` times as many elements as the input; of shape (size * n, ...) or
            (size, n, ...).
    """
    out = check_tensor(output_tensor, "all_gather_into_tensor", "output_tensor")
    tensor = check_tensor(input_tensor, "all_gather_into_tensor", "input_tensor")
    ranks = member(group, "all_gather_into_tensor")
    if ranks is None:
        return None
    _check_sizes("all_gather_into_tensor", "output_tensor", out, "input_tensor", tensor, ranks)
    what = described("all_gather_into_tensor", tensor)
    if is_watched(tensor) or is_watched(out):
        with plugrad.no_grad():
            found = functional.all_gather(tensor.reshape(-1), 0, ranks).reshape(out.shape)
        return _in_terms_of(found, out, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    array, (buffer, written) = readable(carrier, tensor), writable(carrier, out)
    work = ranks.start(what, carrier, lambda: carrier.all_gather(buffer, array), written, [out])
    return finished(work, async_op)


def _check_sizes(
    function: str, large: str, whole: Tensor, small: str, part: Tensor, ranks: ProcessGroup
) -> None:
    """A tensor for all ranks must be `size` times as large as that of one."""
    if whole.numel() != part.numel() * ranks.size():
        raise ValueError(
            f"{function}(): {large} must have {ranks.size()} times as many elements as {small} "
            f"({part.numel()}), got {whole.numel()}"
        )
    if whole.dtype != part.dtype:
        raise TypeError(
            f"{function}(): {large} and {small} must have one dtype, got {whole.dtype} and "
            f"{part.dtype}"
        )


def _scattered(parts: Any, tensors: Sequence[Tensor], carrier: Carrier) -> Any:
    """What writes rows of an array to tensors."""

    def write() -> None:
        for row, tensor in zip(parts, tensors, strict=True):
            array, written = writable(carrier, tensor)
            array[...] = row.reshape(array.shape)
            written()

    return write


def _check_alike(function: str, argument: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    for tensor in tensors:
        if tensor.numel() != like.numel() or tensor.dtype != like.dtype:
            raise ValueError(
                f"{function}(): all tensors of {argument} must be of shape {list(like.shape)} and "
                f"dtype {like.dtype}, got {list(tensor.shape)} and {tensor.dtype}"
            )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensor of rank r to the r-th tensor of a list, on all ranks."""
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
        return finished(_over(ranks, what, outs), async_op)
    if len({out.numel() for out in outs}) > 1:
        return finished(_gather_uneven(outs, tensor, ranks, what), async_op)
    _check_alike("all_gather", "tensor_list", outs, tensor)
    carrier = ranks.carrier(tensor.device.type)
    array = readable(carrier, tensor)
    buffer = _empty(array, (ranks.size(), tensor.numel()))
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.all_gather(buffer, array),
        _scattered(buffer, outs, carrier),
        outs,
    )
    return finished(work, async_op)


def _empty(like: Any, shape: tuple[int, ...]) -> Any:
    """Memory of an array's kind and dtype."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, like.dtype)
    namespace = like.__array_namespace__()
    return namespace.empty(shape, dtype=like.dtype)


def _gather_uneven(
    outs: Sequence[Tensor], tensor: Tensor, ranks: ProcessGroup, what: object
) -> Work:
    """`all_gather` of tensors of several sizes: each rank sends its own to all others."""
    if tensor.numel() != outs[ranks.rank()].numel():
        raise ValueError(
            f"all_gather(): tensor_list[{ranks.rank()}] must have as many elements as tensor "
            f"({tensor.numel()}), got {outs[ranks.rank()].numel()}"
        )
    carrier = ranks.carrier(tensor.device.type)
    array = np.asarray(readable(carrier, tensor)).reshape(-1)
    counts = [out.numel() for out in outs]
    buffer = np.empty(sum(counts), array.dtype)
    sent = np.tile(array, ranks.size())
    ends = list(itertools.accumulate(counts, initial=0))
    parts = [buffer[a:b] for a, b in itertools.pairwise(ends)]
    return ranks.start(
        what,
        carrier,
        lambda: carrier.all_to_all(buffer, sent, counts, [array.size] * ranks.size()),
        _scattered(parts, outs, carrier),
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
    """Write the tensor of rank r to the r-th tensor of a list, on the rank `dst`, which alone gives
    a list."""
    tensor = check_tensor(tensor, "gather", "tensor")
    ranks = member(group, "gather")
    if ranks is None:
        return None
    root = _root(ranks, dst, group_dst, "dst")
    own = ranks.rank() == root
    outs = _list_of_root("gather", "gather_list", gather_list, own, ranks)
    _check_alike("gather", "gather_list", outs, tensor)
    what = described("gather", tensor, f"to {ranks.ranks[root]}")
    if any(map(is_watched, (tensor, *outs))):
        with plugrad.no_grad():
            found = functional.gather(tensor.reshape(1, -1), ranks.ranks[root], 0, ranks)
            for out, row in zip(outs, found, strict=True):
                out.copy_(row.reshape(out.shape))
        return finished(_over(ranks, what, outs), async_op)
    carrier = ranks.carrier(tensor.device.type)
    array = readable(carrier, tensor)
    buffer = _empty(array, (ranks.size(), tensor.numel())) if own else None
    finish = _scattered(buffer, outs, carrier) if own else None
    work = ranks.start(what, carrier, lambda: carrier.gather(buffer, array, root), finish, outs)
    return finished(work, async_op)


def _list_of_root(
    function: str, argument: str, tensors: Any, own: bool, ranks: ProcessGroup
) -> list[Tensor]:
    """The list that the root must give and the others must not."""
    if own:
        return check_list(tensors, function, argument, ranks.size())
    if tensors:
        raise ValueError(
            f"{function}(): argument `{argument}` must NOT be specified on ranks that are not the "
            f"{'destination' if function.startswith('gather') else 'source'}"
        )
    return []


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write the r-th tensor of a list to the tensor of rank r. Only the rank `src` gives a list."""
    tensor = check_tensor(tensor, "scatter", "tensor")
    ranks = member(group, "scatter")
    if ranks is None:
        return None
    root = _root(ranks, src, group_src, "src")
    own = ranks.rank() == root
    sources = _list_of_root("scatter", "scatter_list", scatter_list, own, ranks)
    _check_alike("scatter", "scatter_list", sources, tensor)
    what = described("scatter", tensor, f"from {ranks.ranks[root]}")
    if any(map(is_watched, (tensor, *sources))):
        with plugrad.no_grad():
            whole = plugrad.stack([x.reshape(-1) for x in sources]) if own else tensor
            found = functional.scatter(whole, ranks.ranks[root], 0, (1, tensor.numel()), ranks)
        return _in_terms_of(found.reshape(tensor.shape), tensor, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    whole_array = rows(sources, carrier) if own else None
    buffer, written = writable(carrier, tensor)
    work = ranks.start(
        what, carrier, lambda: carrier.scatter(buffer, whole_array, root), written, [tensor]
    )
    return finished(work, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Put the tensors of all ranks together, and write part r of the result to `output` of rank r.

    Args:
        input: `size` times as many elements as the output; of shape (size * n, ...) or
            (size, n, ...).
    """
    out = check_tensor(output, "reduce_scatter_tensor", "output")
    tensor = check_tensor(input, "reduce_scatter_tensor", "input")
    op = check_reduction(op, tensor, "reduce_scatter_tensor")
    ranks = member(group, "reduce_scatter_tensor")
    if ranks is None:
        return None
    _check_sizes("reduce_scatter_tensor", "input", tensor, "output", out, ranks)
    return _reduce_scatter("reduce_scatter_tensor", out, tensor, op, ranks, async_op)


def _reduce_scatter(
    function: str, out: Tensor, tensor: Tensor, op: ReduceOp, ranks: ProcessGroup, async_op: bool
) -> Work | None:
    what = described(function, tensor, op.value)
    if is_watched(tensor) or is_watched(out):
        with plugrad.no_grad():
            found = functional.reduce_scatter(tensor.reshape(-1), 0, op, ranks)
        return _in_terms_of(found.reshape(out.shape), out, ranks, what, async_op)
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
    """Put the lists of all ranks together, and write the r-th tensor of the result to `output` of
    rank r."""
    out = check_tensor(output, "reduce_scatter", "output")
    op = check_reduction(op, out, "reduce_scatter")
    ranks = member(group, "reduce_scatter")
    if ranks is None:
        return None
    inputs = check_list(input_list, "reduce_scatter", "input_list", ranks.size())
    _check_alike("reduce_scatter", "input_list", inputs, out)
    with plugrad.no_grad():
        whole = plugrad.cat([tensor.reshape(-1) for tensor in inputs])
    return _reduce_scatter("reduce_scatter", out, whole, op, ranks, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send part r of `input` to rank r, and write what rank r sends to part r of `output`.

    Args:
        output_split_sizes: the sizes of the parts of `output` along the first dimension; by default
            all are of one size. `input_split_sizes` are those of the input.
    """
    out = check_tensor(output, "all_to_all_single", "output")
    tensor = check_tensor(input, "all_to_all_single", "input")
    ranks = member(group, "all_to_all_single")
    if ranks is None:
        return None
    if out.dtype != tensor.dtype:
        raise TypeError(
            f"all_to_all_single(): output and input must have one dtype, got {out.dtype} and "
            f"{tensor.dtype}"
        )
    out_counts = split_counts("output", out, output_split_sizes, ranks.size())
    in_counts = split_counts("input", tensor, input_split_sizes, ranks.size())
    what = described("all_to_all_single", tensor)
    if is_watched(tensor) or is_watched(out):
        with plugrad.no_grad():
            found = functional.all_to_all_single(
                tensor, output_split_sizes, input_split_sizes, ranks
            )
        return _in_terms_of(found, out, ranks, what, async_op)
    carrier = ranks.carrier(tensor.device.type)
    array, (buffer, written) = readable(carrier, tensor), writable(carrier, out)
    even = output_split_sizes is None and input_split_sizes is None
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.all_to_all(
            buffer, array, None if even else out_counts, None if even else in_counts
        ),
        written,
        [out],
        alike=even or f"all_to_all_single({tensor.dtype}, of several sizes)",
    )
    return finished(work, async_op)


def split_counts(
    argument: str, tensor: Tensor, sizes: Sequence[int] | None, ranks: int
) -> list[int]:
    """How many elements each part of a tensor has.

    Raises:
        ValueError: the parts do not make up the tensor's first dimension.
    """
    if tensor.ndim == 0:
        raise ValueError(f"all_to_all_single(): {argument} must have a dimension at least")
    length = tensor.shape[0]
    each = tensor.numel() // length if length else 0
    if not sizes:
        if length % ranks:
            raise ValueError(
                f"all_to_all_single(): the first dimension of {argument} must be divisible by the "
                f"{ranks} ranks, got {length}"
            )
        return [length // ranks * each] * ranks
    if len(sizes) != ranks or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(
            f"all_to_all_single(): {argument}_split_sizes must be {ranks} sizes with the sum "
            f"{length}, got {list(sizes)}"
        )
    return [int(size) * each for size in sizes]


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send the r-th tensor of a list to rank r, and write what rank r sends to the r-th tensor of
    another list. Tensors may differ in size."""
    ranks = member(group, "all_to_all")
    if ranks is None:
        return None
    outs = check_list(output_tensor_list, "all_to_all", "output_tensor_list", ranks.size())
    inputs = check_list(input_tensor_list, "all_to_all", "input_tensor_list", ranks.size())
    first = inputs[0]
    for tensor in (*outs, *inputs):
        if tensor.dtype != first.dtype:
            raise TypeError(
                f"all_to_all(): all tensors must have one dtype, got {first.dtype} and "
                f"{tensor.dtype}"
            )
    what = f"all_to_all({first.dtype})"
    in_counts, out_counts = [x.numel() for x in inputs], [x.numel() for x in outs]
    with plugrad.no_grad():
        whole = plugrad.cat([tensor.reshape(-1) for tensor in inputs])
    if any(map(is_watched, (*inputs, *outs))):
        with plugrad.no_grad():
            found = functional.all_to_all_single(whole, out_counts, in_counts, ranks)
            for out, part in zip(outs, found.split(out_counts), strict=True):
                out.copy_(part.reshape(out.shape))
        return finished(_over(ranks, what, outs), async_op)
    carrier = ranks.carrier(first.device.type)
    array = readable(carrier, whole)
    buffer = _empty(array, (sum(out_counts),))
    ends = list(itertools.accumulate(out_counts, initial=0))
    parts = [buffer[a:b] for a, b in itertools.pairwise(ends)]
    work = ranks.start(
        what,
        carrier,
        lambda: carrier.all_to_all(buffer, array, out_counts, in_counts),
        _scattered(parts, outs, carrier),
        outs,
    )
    return finished(work, async_op)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Wait until all ranks have called it. `device_ids` is not needed."""
    ranks = member(group, "barrier")
    if ranks is None:
        return None
    carrier = ranks.carrier("cpu")
    return finished(ranks.start("barrier()", carrier, carrier.barrier), async_op)


def monitored_barrier(
    group: Any = None,
    timeout: timedelta | float | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """A barrier that names the ranks which did not come: rank 0 waits for a message of each.

    Args:
        timeout: how long rank 0 waits; the group's by default.
        wait_all_ranks: whether to name all that are missing rather than the first.

    Raises:
        DistBackendError: on rank 0, with the ranks that are missing.
        DistTimeoutError: on other ranks, if rank 0 did not answer.
    """
    ranks = member(group, "monitored_barrier")
    if ranks is None or group is GroupMember.NON_GROUP_MEMBER:
        return
    from plugrad_distributed.distributed.monitoring import meet

    limit = ranks.timeout if timeout is None else seconds(timeout, "monitored_barrier")
    meet(ranks, limit, wait_all_ranks)
