"""Shared code of all functions that communicate: checks of arguments, and the choice of the
carrier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.plugins.tracing import is_direct
from plugrad_distributed.distributed.queries import get_group
from plugrad_distributed.groups.described import Described
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.reduce_op import ReduceOp

__all__ = [
    "after",
    "check_alike",
    "check_sizes",
    "in_terms_of",
    "list_of_root",
    "over",
    "root_of",
    "check_list",
    "check_reduction",
    "check_tensor",
    "described",
    "finished",
    "is_watched",
    "member",
]


def member(group: Any, function: str) -> ProcessGroup | None:
    """The group, or None with a warning on a rank that is not in it."""
    found = get_group(group, function)
    if found is None:
        warnings.warn(
            f"{function}(): this rank is not part of the group, so it does nothing", stacklevel=3
        )
    return found


def check_tensor(value: object, function: str, argument: str) -> Tensor:
    """The tensor; TypeError for anything else."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): expected parameter `{argument}` of type Tensor but got "
            f"{type(value).__name__} instead"
        )
    return value


def check_list(value: object, function: str, argument: str, count: int | None) -> list[Tensor]:
    """The `count` tensors of a list; TypeError or ValueError for anything else."""
    if not isinstance(value, Sequence) or not all(isinstance(item, Tensor) for item in value):
        raise TypeError(
            f"{function}(): expected parameter `{argument}` of type list of Tensors but got "
            f"{type(value).__name__} instead"
        )
    if count is not None and len(value) != count:
        raise ValueError(
            f"{function}(): `{argument}` must have a tensor for each of the {count} ranks of the "
            f"group, got {len(value)}"
        )
    return list(value)


def check_reduction(op: Any, tensor: Tensor, function: str) -> ReduceOp:
    """The reduction, if it is defined for that dtype."""
    found = op if isinstance(op, ReduceOp) else ReduceOp.named(op)
    dtype = tensor.dtype
    if found is ReduceOp.SUM:
        return found
    if dtype.is_complex and found in (ReduceOp.MIN, ReduceOp.MAX):
        raise ValueError(f"{function}(): {found} is not defined for complex tensors")
    if found in _OF_BITS and (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"{function}(): {found} is for integers and bools, got {dtype}")
    if found is ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"{function}(): {found} is for floating point tensors, got {dtype}")
    return found


_OF_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def is_watched(tensor: Tensor) -> bool:
    """Whether the call must go through an operator instead of the tensor's memory: a mode or trace
    observes operators, or the tensor belongs to a transform, has no data or is read-only."""
    return not is_direct(tensor)


def described(name: str, tensor: Tensor, more: str = "") -> Described:
    """A call as text for messages."""
    return Described(name, tensor.dtype, tensor.shape, more)


def finished(work: Work, async_op: bool) -> Work | None:
    """The work, or None once it is complete."""
    if async_op:
        return work.in_background()
    work.wait()
    return None


def after(*steps: Callable[[], None] | None) -> Callable[[], None]:
    """One function that calls several in order."""

    def run() -> None:
        for step in steps:
            if step is not None:
                step()

    return run


def over(group: ProcessGroup, what: object, results: Sequence[Tensor]) -> Work:
    """Work that is already complete."""
    return Work(group, what, None, None, results)


def in_terms_of(
    found: Tensor, out: Tensor, group: ProcessGroup, what: object, async_op: bool
) -> Work | None:
    """Write an operator's result to its destination."""
    with plugrad.no_grad():
        out.copy_(found)
    return finished(over(group, what, [out]), async_op)


def root_of(ranks: ProcessGroup, rank: int | None, in_group: int | None, name: str) -> int:
    """The number in the group of a source or destination, given by its global number or its number
    in the group."""
    if rank is not None and in_group is not None:
        raise ValueError(f"Can't specify both {name} and group_{name}")
    if in_group is not None:
        if not 0 <= in_group < ranks.size():
            raise ValueError(
                f"group_{name} must be in the interval [0, {ranks.size() - 1}], got {in_group}"
            )
        return in_group
    return ranks.local(0 if rank is None else rank, name)


def check_sizes(
    function: str, large: str, whole: Tensor, small: str, part: Tensor, ranks: ProcessGroup
) -> None:
    """A tensor for all ranks must be `size` times as large as one rank's."""
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


def check_alike(function: str, argument: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    for tensor in tensors:
        if tensor.numel() != like.numel() or tensor.dtype != like.dtype:
            raise ValueError(
                f"{function}(): all tensors of {argument} must be of shape {list(like.shape)} and "
                f"dtype {like.dtype}, got {list(tensor.shape)} and {tensor.dtype}"
            )


def list_of_root(
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
