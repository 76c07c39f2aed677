"""Equal initial states on all ranks: compares parameters, then sends one rank's to the others."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.collectives import all_gather_into_tensor, broadcast
from plugrad_distributed.distributed.objects import all_gather_object
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["broadcast_coalesced", "check_same_parameters", "find_tensors"]

# The largest message, in bytes.
COALESCED_BYTES = 250 << 20


def check_same_parameters(named: Sequence[tuple[str, Tensor]], group: ProcessGroup) -> None:
    """Raise unless the parameters have the same names, shapes and dtypes on all ranks.

    Raises:
        RuntimeError: they differ; raised on all ranks. It names the first parameter that differs.
    """
    mine = [(name, tuple(p.shape), str(p.dtype), p.requires_grad) for name, p in named]
    # 7 bytes, so that the number is not negative.
    digest = int.from_bytes(hashlib.sha256(repr(mine).encode()).digest()[:7], "big")
    digests = plugrad.zeros(group.size(), dtype=plugrad.int64)
    all_gather_into_tensor(digests, plugrad.tensor([digest]), group)
    if len(set(digests.tolist())) == 1:
        return
    lists: list[Any] = [None] * group.size()
    all_gather_object(lists, mine, group)
    for rank, theirs in zip(group.ranks, lists, strict=True):
        if theirs != lists[0]:
            raise RuntimeError(_difference(group.ranks[0], lists[0], rank, theirs))


def _difference(first: int, expected: list[Any], rank: int, found: list[Any]) -> str:
    """The message about the difference between the parameters of two ranks."""
    if len(found) != len(expected):
        return (
            f"DDP expects same model across all ranks, but Rank {first} has {len(expected)} "
            f"params, while rank {rank} has inconsistent {len(found)} params."
        )
    index, wanted, got = next(
        (index, *pair)
        for index, pair in enumerate(zip(expected, found, strict=True))
        if pair[0] != pair[1]
    )

    def told(entry: Any) -> str:
        name, shape, dtype, requires_grad = entry
        return f"{name!r} of shape {list(shape)}, {dtype}, requires_grad={requires_grad}"

    return (
        f"DDP expects same model across all ranks, but parameter {index} is {told(wanted)} on rank "
        f"{first} and {told(got)} on rank {rank}"
    )


def broadcast_coalesced(tensors: Iterable[Tensor], group: ProcessGroup, root: int) -> None:
    """Copy tensors of the rank `root` of the group to the others, in few large messages instead of
    many small ones."""
    by_kind: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_kind.setdefault((tensor.dtype, tensor.device), []).append(tensor.detach())
    with plugrad.no_grad():
        for alike in by_kind.values():
            for part in _parts(alike):
                _broadcast_together(part, group, root)


def _parts(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Lists of tensors, one for each message."""
    found: list[list[Tensor]] = [[]]
    size = 0
    for tensor in tensors:
        size += tensor.numel() * tensor.element_size()
        if size > COALESCED_BYTES and found[-1]:
            found.append([])
            size = tensor.numel() * tensor.element_size()
        found[-1].append(tensor)
    return found


def _broadcast_together(tensors: Sequence[Tensor], group: ProcessGroup, root: int) -> None:
    flat = plugrad.cat([tensor.reshape(-1) for tensor in tensors])
    broadcast(flat, group=group, group_src=root)
    if group.rank() == root:
        return
    start = 0
    for tensor in tensors:
        end = start + tensor.numel()
        tensor.copy_(flat[start:end].view(tensor.shape))
        start = end


def find_tensors(value: Any) -> list[Tensor]:
    """The tensors in lists, tuples, dicts and data classes."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        inner: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = (getattr(value, field.name) for field in dataclasses.fields(value))
    else:
        return []
    return [tensor for each in inner for tensor in find_tensors(each)]
