"""Collectives of any Python objects, through pickle. Use them only among ranks that trust one
another: unpickling can run code that the sender chose."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.calls import member, root_of
from plugrad_distributed.distributed.collectives import (
    all_gather,
    all_to_all_single,
    broadcast,
    gather,
)
from plugrad_distributed.distributed.points import recv, send
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _packed(value: object) -> Tensor:
    return plugrad.from_numpy(np.frombuffer(bytearray(pickle.dumps(value)), np.uint8))


def _unpacked(data: Tensor) -> Any:
    return pickle.loads(data.numpy().tobytes())


def _number(tensor: Tensor) -> int:
    return int(tensor.numpy().reshape(()))


def _sizes(data: Tensor, ranks: ProcessGroup) -> list[int]:
    """The sizes of the data of all ranks."""
    found = [plugrad.zeros(1, dtype=plugrad.int64) for _ in range(ranks.size())]
    all_gather(found, plugrad.tensor([data.numel()]), ranks)
    return [_number(size) for size in found]


def _check_room(function: str, argument: str, values: Any, ranks: ProcessGroup) -> None:
    if not isinstance(values, list) or len(values) != ranks.size():
        raise ValueError(
            f"{function}(): {argument} must be a list with a place for each of the {ranks.size()} "
            f"ranks, got {len(values) if isinstance(values, list) else type(values).__name__}"
        )


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the object of rank r to position r of a list, on all ranks.

    >>> import plugrad.distributed as dist
    >>> def program():
    ...     found = [None] * dist.get_world_size()
    ...     dist.all_gather_object(found, {"rank": dist.get_rank()})
    ...     return found
    >>> dist.run_ranks(program, 2)[0]
    [{'rank': 0}, {'rank': 1}]
    """
    ranks = member(group, "all_gather_object")
    if ranks is None:
        return
    _check_room("all_gather_object", "object_list", object_list, ranks)
    data = _packed(obj)
    parts = [plugrad.empty(size, dtype=plugrad.uint8) for size in _sizes(data, ranks)]
    all_gather(parts, data, ranks)
    object_list[:] = [_unpacked(part) for part in parts]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """`all_gather_object` on the rank `dst` only, which alone passes a list.

    >>> import plugrad.distributed as dist
    >>> def program():
    ...     found = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    ...     dist.gather_object({"rank": dist.get_rank()}, found, dst=0)
    ...     return found
    >>> dist.run_ranks(program, 2)
    [[{'rank': 0}, {'rank': 1}], None]
    """
    ranks = member(group, "gather_object")
    if ranks is None:
        return
    root = root_of(ranks, dst, group_dst, "dst")
    if ranks.rank() == root:
        _check_room("gather_object", "object_gather_list", object_gather_list, ranks)
    elif object_gather_list is not None:
        raise ValueError(
            "gather_object(): object_gather_list must be None on ranks that are not dst"
        )
    data = _packed(obj)
    largest = max(_sizes(data, ranks))
    padded = plugrad.zeros(largest, dtype=plugrad.uint8)
    padded[: data.numel()] = data
    parts = None
    if ranks.rank() == root:
        parts = [plugrad.empty(largest, dtype=plugrad.uint8) for _ in range(ranks.size())]
    gather(padded, parts, group=ranks, group_dst=root)
    if parts is not None and object_gather_list is not None:
        object_gather_list[:] = [_unpacked(part) for part in parts]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Copy the objects of a list on the rank `src` to the lists of the others, which must have the
    same length. `device` is ignored.

    >>> import plugrad.distributed as dist
    >>> def program():
    ...     told = ["adam", {"lr": 0.1}] if dist.get_rank() == 0 else [None, None]
    ...     dist.broadcast_object_list(told, src=0)
    ...     return told
    >>> dist.run_ranks(program, 2)[1]
    ['adam', {'lr': 0.1}]
    """
    ranks = member(group, "broadcast_object_list")
    if ranks is None:
        return
    root = root_of(ranks, src, group_src, "src")
    own = ranks.rank() == root
    data = _packed(list(object_list)) if own else plugrad.empty(0, dtype=plugrad.uint8)
    size = plugrad.tensor([data.numel()])
    broadcast(size, group=ranks, group_src=root)
    if not own:
        data = plugrad.empty(_number(size), dtype=plugrad.uint8)
    broadcast(data, group=ranks, group_src=root)
    if own:
        return
    found = _unpacked(data)
    if len(found) != len(object_list):
        raise ValueError(
            f"broadcast_object_list(): object_list must have {len(found)} places as on rank "
            f"{ranks.ranks[root]}, got {len(object_list)}"
        )
    object_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Write the r-th object of a list on the rank `src` to the first position of a list on rank
    r.

    >>> import plugrad.distributed as dist
    >>> def program():
    ...     own = [None]
    ...     tasks = ["train", "test"] if dist.get_rank() == 0 else None
    ...     dist.scatter_object_list(own, tasks, src=0)
    ...     return own
    >>> dist.run_ranks(program, 2)
    [['train'], ['test']]
    """
    ranks = member(group, "scatter_object_list")
    if ranks is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = root_of(ranks, src, group_src, "src")
    sizes, whole = [0] * ranks.size(), plugrad.empty(0, dtype=plugrad.uint8)
    if ranks.rank() == root:
        _check_room(
            "scatter_object_list", "scatter_object_input_list", scatter_object_input_list, ranks
        )
        parts = [_packed(value) for value in scatter_object_input_list or ()]
        sizes, whole = [part.numel() for part in parts], plugrad.cat(parts)
    told = plugrad.tensor(sizes)
    broadcast(told, group=ranks, group_src=root)
    own = _number(told[ranks.rank()])
    from_each = [own if rank == root else 0 for rank in range(ranks.size())]
    data = plugrad.empty(own, dtype=plugrad.uint8)
    all_to_all_single(data, whole, from_each, sizes, ranks)
    scatter_object_output_list[0] = _unpacked(data)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Send the objects of a list to a rank. `device` is ignored.

    >>> import plugrad.distributed as dist
    >>> def program():
    ...     if dist.get_rank() == 0:
    ...         return dist.send_object_list(["hello", 3], dst=1)
    ...     words = [None, None]
    ...     dist.recv_object_list(words, src=0)
    ...     return words
    >>> dist.run_ranks(program, 2)
    [None, ['hello', 3]]
    """
    data = _packed(list(object_list))
    send(plugrad.tensor([data.numel()]), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Receive objects into a list, and return the sender.

    >>> import plugrad.distributed as dist
    >>> def program():
    ...     if dist.get_rank() == 1:
    ...         return dist.send_object_list(["hello"], dst=0)
    ...     words = [None]
    ...     sender = dist.recv_object_list(words)  # from any rank
    ...     return sender, words
    >>> dist.run_ranks(program, 2)[0]
    (1, ['hello'])
    """
    size = plugrad.zeros(1, dtype=plugrad.int64)
    sender = recv(size, src, group, group_src=group_src)
    if sender < 0:
        return sender
    data = plugrad.empty(_number(size), dtype=plugrad.uint8)
    recv(data, sender, group)
    object_list[:] = _unpacked(data)
    return sender
