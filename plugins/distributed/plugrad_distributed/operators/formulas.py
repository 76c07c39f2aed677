"""The functions that entries of collectives.yaml name: checks of arguments, and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.world import group_named
from plugrad_distributed.reduce_op import ReduceOp

LINEAR = ("sum", "avg")


def _ops() -> Any:
    return plugrad.ops.distributed


# prepare: checks


def _wrapped(self: Tensor, dim: int, function: str) -> int:
    count = max(self.ndim, 1)
    if not -count <= dim < count:
        raise IndexError(
            f"{function}(): Dimension out of range (expected to be in range of [{-count}, "
            f"{count - 1}], but got {dim})"
        )
    return dim % count


def _rank(group: str, rank: int, argument: str) -> ProcessGroup:
    found = group_named(group)
    if not 0 <= rank < found.size():
        raise ValueError(
            f"{argument} must be in the interval [0, {found.size() - 1}] of group "
            f"{found.name!r}, got {rank}"
        )
    return found


def reduction(self: Tensor, op: str, group: str) -> tuple[Any, ...]:
    return self, ReduceOp.named(op).value, group_named(group).name


def reduction_to(self: Tensor, dst: int, op: str, group: str) -> tuple[Any, ...]:
    return self, dst, ReduceOp.named(op).value, _rank(group, dst, "dst").name


def rank_of_group(self: Tensor, src: int, group: str) -> tuple[Any, ...]:
    return self, src, _rank(group, src, "src").name


def dimension(self: Tensor, dim: int, group: str) -> tuple[Any, ...]:
    return self, _wrapped(self, dim, "all_gather"), group_named(group).name


def divided(self: Tensor, dim: int, op: str, group: str) -> tuple[Any, ...]:
    dim = _wrapped(self, dim, "reduce_scatter")
    found = group_named(group)
    _check_divisible(self, dim, found, "reduce_scatter")
    return self, dim, ReduceOp.named(op).value, found.name


def _check_divisible(self: Tensor, dim: int, group: ProcessGroup, function: str) -> None:
    length = self.shape[dim] if self.ndim else 1
    if length % group.size():
        raise ValueError(
            f"{function}(): the size of dimension {dim} must be divisible by the {group.size()} "
            f"ranks of the group, got {length}"
        )


def splits(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: str,
) -> tuple[Any, ...]:
    found = group_named(group)
    if self.ndim == 0:
        raise ValueError("all_to_all_single(): self must have a dimension at least")
    length = self.shape[0]
    if not input_split_sizes:
        _check_divisible(self, 0, found, "all_to_all_single")
        input_split_sizes = [length // found.size()] * found.size()
    elif len(input_split_sizes) != found.size() or sum(input_split_sizes) != length:
        raise ValueError(
            f"all_to_all_single(): input_split_sizes must be {found.size()} sizes with the sum "
            f"{length}, got {list(input_split_sizes)}"
        )
    if not output_split_sizes:
        _check_divisible(self, 0, found, "all_to_all_single")
        output_split_sizes = [length // found.size()] * found.size()
    elif len(output_split_sizes) != found.size():
        raise ValueError(
            f"all_to_all_single(): output_split_sizes must be {found.size()} sizes, got "
            f"{list(output_split_sizes)}"
        )
    return self, list(output_split_sizes), list(input_split_sizes), found.name


def gathering(self: Tensor, dst: int, dim: int, group: str) -> tuple[Any, ...]:
    return self, dst, _wrapped(self, dim, "gather"), _rank(group, dst, "dst").name


def scattering(
    self: Tensor, src: int, dim: int, size: Sequence[int], group: str
) -> tuple[Any, ...]:
    found = _rank(group, src, "src")
    count = max(len(size), 1)
    if not -count <= dim < count:
        raise IndexError(
            f"scatter(): Dimension out of range (expected to be in range of [{-count}, "
            f"{count - 1}], but got {dim})"
        )
    dim %= count
    if found.rank() == src:
        whole = list(size) or [1]
        whole[dim] *= found.size()
        if list(self.shape) != whole:
            raise ValueError(
                f"scatter(): self must be of shape {whole} on the rank src, for {found.size()} "
                f"parts of shape {list(size)}, got {list(self.shape)}"
            )
    return self, src, dim, list(size), found.name


def sending(self: Tensor, dst: int, tag: int, group: str) -> tuple[Any, ...]:
    return self, dst, tag, _rank(group, dst, "dst").name


def receiving(self: Tensor, src: int, size: Sequence[int], tag: int, group: str) -> tuple[Any, ...]:
    return self, src, list(size), tag, _rank(group, src, "src").name


# Gradients


def all_reduce_gradient(grad: Tensor, self: Tensor, result: Tensor, op: str, group: str) -> Tensor:
    """The sum of the ranks' gradients, times the derivative of the reduction."""
    total: Tensor = _ops().all_reduce(grad, "sum", group)
    return _times_slope(total, self, result, op, group)


def all_reduce_tangent(self_t: Tensor, self: Tensor, result: Tensor, op: str, group: str) -> Tensor:
    """The sum of the ranks' tangents, each times the derivative of the reduction."""
    weighted = _times_slope(self_t, self, result, op, group)
    found: Tensor = _ops().all_reduce(weighted, "sum", group)
    return found


def _times_slope(grad: Tensor, self: Tensor, result: Tensor, op: str, group: str) -> Tensor:
    """A gradient of the result times its derivative by this rank's tensor."""
    if op == "sum":
        return grad
    if op == "avg":
        return grad / group_named(group).size()
    if op in ("min", "max"):
        # Divided among the ranks with the extreme value, as in amax.
        mine = (self == result).to(grad.dtype)
        holders: Tensor = _ops().all_reduce(mine, "sum", group)
        return grad * mine / holders
    if op == "product":
        return grad * _product_of_others(self, group).conj()
    raise NotImplementedError(f"all_reduce(): {op!r} has no gradient")


def _product_of_others(self: Tensor, group: str) -> Tensor:
    ranks = group_named(group)
    every: Tensor = _ops().all_gather(self.unsqueeze(0), 0, group)
    others = [every[rank] for rank in range(ranks.size()) if rank != ranks.rank()]
    product = plugrad.ones_like(self)
    for other in others:
        product = product * other
    return product


def _mean_of(grad: Tensor, op: str, group: str, function: str) -> Tensor:
    """The gradient of a sum or an average, from the result's gradient."""
    if op not in LINEAR:
        raise NotImplementedError(
            f"{function}(): {op!r} has no gradient; use all_reduce(), which has one"
        )
    return grad / group_named(group).size() if op == "avg" else grad


def reduce_gradient(grad: Tensor, dst: int, op: str, group: str) -> Tensor:
    return _mean_of(_ops().broadcast(grad, dst, group), op, group, "reduce")


def reduce_tangent(self_t: Tensor, dst: int, op: str, group: str) -> Tensor:
    found: Tensor = _ops().reduce(_mean_of(self_t, op, group, "reduce"), dst, "sum", group)
    return found


def reduce_scatter_gradient(grad: Tensor, dim: int, op: str, group: str) -> Tensor:
    return _mean_of(_ops().all_gather(grad, dim, group), op, group, "reduce_scatter")


def reduce_scatter_tangent(self_t: Tensor, dim: int, op: str, group: str) -> Tensor:
    weighted = _mean_of(self_t, op, group, "reduce_scatter")
    found: Tensor = _ops().reduce_scatter(weighted, dim, "sum", group)
    return found


def scatter_gradient(grad: Tensor, self: Tensor, src: int, dim: int, group: str) -> Tensor:
    """All parts' gradients on the rank that had the tensor, zeros on the others. There an empty sum
    ties them to the graph, because all ranks must run the next backward pass, too."""
    found: Tensor = _ops().gather(grad, src, dim, group)
    if group_named(group).rank() == src:
        return found
    return plugrad.zeros_like(self) + found.sum()


def send_back(grad: Tensor, self: Tensor, src: int, tag: int, group: str) -> Tensor:
    """Send the gradient to the sender of the tensor; the gradient of `self` itself is zero."""
    token: Tensor = _ops().send(grad, src, tag, group)
    return token.expand(self.shape)
