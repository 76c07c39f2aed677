"""Differentiable collectives that return new tensors. Gradients are derivatives of the sum of all
ranks' losses. Each is an operator of `plugrad.ops.distributed`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.calls import check_reduction, check_tensor
from plugrad_distributed.distributed.queries import get_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.reduce_op import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all_single",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]


def _group(group: Any, function: str) -> ProcessGroup:
    found = get_group(group, function)
    if found is None:
        raise ValueError(f"{function}(): this rank is not part of the group")
    return found


def _ops() -> Any:
    return plugrad.ops.distributed


def all_reduce(tensor: Tensor, op: ReduceOp | str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all ranks' tensors, on every rank.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed import functional
    >>> def program():
    ...     x = plugrad.ones(1, requires_grad=True)
    ...     functional.all_reduce(x * 2).sum().backward()
    ...     return x.grad
    >>> dist.run_ranks(program, 2)
    [tensor([4.]), tensor([4.])]
    """
    tensor = check_tensor(tensor, "all_reduce", "tensor")
    op = check_reduction(op, tensor, "all_reduce")
    found: Tensor = _ops().all_reduce(tensor, op.value, _group(group, "all_reduce").name)
    return found


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp | str = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The reduction of all ranks' tensors, on the rank `dst`; zeros on the others."""
    tensor = check_tensor(tensor, "reduce", "tensor")
    op = check_reduction(op, tensor, "reduce")
    ranks = _group(group, "reduce")
    found: Tensor = _ops().reduce(tensor, ranks.local(dst, "dst"), op.value, ranks.name)
    return found


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of the rank `src`, on all ranks."""
    tensor = check_tensor(tensor, "broadcast", "tensor")
    ranks = _group(group, "broadcast")
    found: Tensor = _ops().broadcast(tensor, ranks.local(src, "src"), ranks.name)
    return found


def all_gather(tensor: Tensor, dim: int = 0, group: Any = None) -> Tensor:
    """The tensors of all ranks, of one shape, concatenated along a dimension.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed import functional
    >>> dist.run_ranks(lambda: functional.all_gather(plugrad.ones(1) * dist.get_rank()), 2)
    [tensor([0., 1.]), tensor([0., 1.])]
    """
    tensor = check_tensor(tensor, "all_gather", "tensor")
    found: Tensor = _ops().all_gather(tensor, dim, _group(group, "all_gather").name)
    return found


def reduce_scatter(
    tensor: Tensor, dim: int = 0, op: ReduceOp | str = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The reduction of all ranks' tensors, cut along a dimension: rank r gets part r.

    >>> import plugrad
    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed import functional
    >>> dist.run_ranks(lambda: functional.reduce_scatter(plugrad.tensor([1.0, 2.0])), 2)
    [tensor([2.]), tensor([4.])]
    """
    tensor = check_tensor(tensor, "reduce_scatter", "tensor")
    op = check_reduction(op, tensor, "reduce_scatter")
    name = _group(group, "reduce_scatter").name
    found: Tensor = _ops().reduce_scatter(tensor, dim, op.value, name)
    return found


def all_to_all_single(
    tensor: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Exchange parts along the first dimension: rank r gets part r of every rank's tensor."""
    tensor = check_tensor(tensor, "all_to_all_single", "tensor")
    found: Tensor = _ops().all_to_all_single(
        tensor,
        None if output_split_sizes is None else list(output_split_sizes),
        None if input_split_sizes is None else list(input_split_sizes),
        _group(group, "all_to_all_single").name,
    )
    return found


def gather(tensor: Tensor, dst: int, dim: int = 0, group: Any = None) -> Tensor:
    """The tensors of all ranks concatenated along a dimension, on the rank `dst`; an empty tensor
    on others."""
    tensor = check_tensor(tensor, "gather", "tensor")
    ranks = _group(group, "gather")
    found: Tensor = _ops().gather(tensor, ranks.local(dst, "dst"), dim, ranks.name)
    return found


def scatter(tensor: Tensor, src: int, dim: int, size: Sequence[int], group: Any = None) -> Tensor:
    """Cut the tensor of the rank `src` along a dimension: rank r gets part r, which has the given
    size. Tensors of other ranks only give device and dtype."""
    tensor = check_tensor(tensor, "scatter", "tensor")
    ranks = _group(group, "scatter")
    found: Tensor = _ops().scatter(tensor, ranks.local(src, "src"), dim, list(size), ranks.name)
    return found


def send(tensor: Tensor, dst: int, tag: int = 0, group: Any = None) -> Tensor:
    """Send a tensor to the rank `dst`; backward from the result receives the gradient."""
    tensor = check_tensor(tensor, "send", "tensor")
    ranks = _group(group, "send")
    found: Tensor = _ops().send(tensor, ranks.local(dst, "dst"), tag, ranks.name)
    return found


def recv(
    like: Tensor, src: int, size: Sequence[int] | None = None, tag: int = 0, group: Any = None
) -> Tensor:
    """Receive a tensor from the rank `src`, with the dtype, device and, by default, size of `like`.
    If `like` requires grad, backward sends the gradient to the rank that called `send`."""
    like = check_tensor(like, "recv", "like")
    ranks = _group(group, "recv")
    shape = list(like.shape if size is None else size)
    found: Tensor = _ops().recv(like, ranks.local(src, "src"), shape, tag, ranks.name)
    return found
