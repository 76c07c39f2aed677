"""Differentiable collectives with the names and arguments of `torch.distributed.nn.functional`.

Gradients are derivatives of the sum of all ranks' losses, so all ranks must run backward.
`plugrad.distributed.functional` has the same collectives with fewer arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed import functional
from plugrad_distributed.distributed.calls import check_list, check_tensor
from plugrad_distributed.distributed.queries import get_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.reduce_op import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _ranks(group: Any, function: str) -> ProcessGroup:
    found = get_group(group, function)
    if found is None:
        raise ValueError(f"{function}(): this rank is not part of the group")
    return found


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of the rank `src`, on all ranks.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import broadcast
    >>> def program():
    ...     return broadcast(plugrad.tensor([1.0 + dist.get_rank()]), 0)
    >>> dist.run_ranks(program, 2)
    [tensor([1.]), tensor([1.])]
    """
    return functional.broadcast(tensor, src, group)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, on the rank `dst`; zeros of the same shapes on the others.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import gather
    >>> dist.run_ranks(lambda: gather(plugrad.tensor([1.0 + dist.get_rank()])), 2)
    [(tensor([1.]), tensor([2.])), (tensor([0.]), tensor([0.]))]
    """
    tensor = check_tensor(tensor, "gather", "tensor")
    ranks = _ranks(group, "gather")
    found = functional.gather(tensor.unsqueeze(0), dst, 0, ranks)
    if found.shape[0] == ranks.size():
        return tuple(found.unbind(0))
    # Nothing was received here; the sum of nothing is zero, and backward runs through it.
    return (found.sum(0),) * ranks.size()


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The r-th tensor of the list of the rank `src`, on rank r. The lists of other ranks only give
    shape, dtype and device.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import scatter
    >>> def program():
    ...     return scatter([plugrad.tensor([1.0]), plugrad.tensor([2.0])], 0)
    >>> dist.run_ranks(program, 2)
    [tensor([1.]), tensor([2.])]
    """
    ranks = _ranks(group, "scatter")
    given = check_list(tensors, "scatter", "tensors", ranks.size())
    size = (1, *given[0].shape)
    return functional.scatter(plugrad.stack(given), src, 0, size, ranks).squeeze(0)


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp | str = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The reduction of all ranks' tensors, on the rank `dst`; zeros on the others.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import reduce
    >>> def program():
    ...     return reduce(plugrad.tensor([1.0 + dist.get_rank()]), 0)
    >>> dist.run_ranks(program, 2)
    [tensor([3.]), tensor([0.])]
    """
    return functional.reduce(tensor, dst, op, group)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp | str = ReduceOp.SUM,
    group: Any = None,
) -> Tensor:
    """Reduce the lists of all ranks; rank r gets the r-th tensor. It is written to `output` and
    returned with its graph.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import reduce_scatter
    >>> def program():
    ...     given = [plugrad.tensor([1.0]), plugrad.tensor([2.0])]
    ...     return reduce_scatter(plugrad.empty(1), given)
    >>> dist.run_ranks(program, 2)
    [tensor([2.]), tensor([4.])]
    """
    ranks = _ranks(group, "reduce_scatter")
    given = check_list(input_list, "reduce_scatter", "input_list", ranks.size())
    found = functional.reduce_scatter(plugrad.stack(given), 0, op, ranks).squeeze(0)
    return _written(output, found, "reduce_scatter")


def _written(output: Tensor, found: Tensor, function: str) -> Tensor:
    """A result, also written to a tensor, in its shape."""
    output = check_tensor(output, function, "output")
    if output.numel() != found.numel():
        raise ValueError(
            f"{function}(): output must have {found.numel()} elements, got {output.numel()}"
        )
    found = found.reshape(output.shape)
    with plugrad.no_grad():
        output.copy_(found)
    return found


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, which have the same shape, on every rank.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import all_gather
    >>> dist.run_ranks(lambda: all_gather(plugrad.tensor([dist.get_rank()])), 2)[0]
    (tensor([0]), tensor([1]))
    """
    tensor = check_tensor(tensor, "all_gather", "tensor")
    return tuple(functional.all_gather(tensor.unsqueeze(0), 0, group).unbind(0))


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """`all_gather` as one tensor, which is written to `output_tensor` and has its shape."""
    tensor = check_tensor(input_tensor, "_all_gather_base", "input_tensor")
    found = functional.all_gather(tensor.unsqueeze(0), 0, group)
    return _written(output_tensor, found, "_all_gather_base")


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Rank r gets the r-th tensor of every rank's list. The outputs give the shapes; results are
    written to them and returned with their graph.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import all_to_all
    >>> def program():
    ...     given = [plugrad.tensor([10.0 * dist.get_rank() + to]) for to in range(2)]
    ...     return all_to_all([plugrad.empty(1), plugrad.empty(1)], given)
    >>> dist.run_ranks(program, 2)
    [(tensor([0.]), tensor([10.])), (tensor([1.]), tensor([11.]))]
    """
    ranks = _ranks(group, "all_to_all")
    outs = check_list(output_tensor_list, "all_to_all", "output_tensor_list", ranks.size())
    given = check_list(input_tensor_list, "all_to_all", "input_tensor_list", ranks.size())
    found = functional.all_to_all_single(
        plugrad.cat([tensor.reshape(-1) for tensor in given]),
        [tensor.numel() for tensor in outs],
        [tensor.numel() for tensor in given],
        ranks,
    )
    parts = found.split([tensor.numel() for tensor in outs])
    return tuple(_written(out, part, "all_to_all") for out, part in zip(outs, parts, strict=True))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Exchange parts along the first dimension: rank r gets part r of every rank's tensor. The
    result is written to `output` and returned with its graph.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import all_to_all_single
    >>> def program():
    ...     given = plugrad.tensor([0.0, 1.0]) + 10 * dist.get_rank()
    ...     return all_to_all_single(plugrad.empty(2), given)
    >>> dist.run_ranks(program, 2)
    [tensor([ 0., 10.]), tensor([ 1., 11.])]
    """
    found = functional.all_to_all_single(input, output_split_sizes, input_split_sizes, group)
    return _written(output, found, "all_to_all_single")


def all_reduce(tensor: Tensor, op: ReduceOp | str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all ranks' tensors, on every rank.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.nn.functional import all_reduce
    >>> def program():
    ...     x = plugrad.tensor([1.0 + dist.get_rank()], requires_grad=True)
    ...     total = all_reduce(x * x)
    ...     total.backward()
    ...     return total.item(), x.grad
    >>> dist.run_ranks(program, 2)  # x gets a gradient from the total of each rank
    [(5.0, tensor([4.])), (5.0, tensor([8.]))]
    """
    return functional.all_reduce(tensor, op, group)
