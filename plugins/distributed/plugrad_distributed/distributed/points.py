"""Messages from one rank to another: `send`, `recv`, `isend`, `irecv`, `batch_isend_irecv`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from plugrad import Tensor
from plugrad_distributed.arrays import readable, writable
from plugrad_distributed.carriers.carrier import ANY_SOURCE, COLLECTIVE_TAG
from plugrad_distributed.distributed.calls import check_tensor, described, member, root_of
from plugrad_distributed.distributed.queries import get_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _check_tag(tag: int, function: str) -> int:
    if not isinstance(tag, int) or not 0 <= tag < COLLECTIVE_TAG - 2:
        raise ValueError(
            f"{function}(): tag must be in the interval [0, {COLLECTIVE_TAG - 3}], got {tag!r}"
        )
    return tag


def _to(function: str, ranks: ProcessGroup, rank: int | None, in_group: int | None) -> int:
    if rank is None and in_group is None:
        raise ValueError(f"{function}(): dst or group_dst must be given")
    found = root_of(ranks, rank, in_group, "dst")
    if found == ranks.rank() and ranks.size() > 1:
        raise ValueError(
            f"{function}(): dst must be another rank than this one, got {ranks.ranks[found]}"
        )
    return found


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to a rank. Do not write to the tensor before the work is complete.

    Args:
        dst: the rank, by its global number; `group_dst` is its number in the group.
        tag: `recv` with the same tag receives it.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     x = plugrad.zeros(2)
    ...     if dist.get_rank() == 0:
    ...         work = dist.isend(plugrad.ones(2), dst=1)
    ...     else:
    ...         work = dist.irecv(x, src=0)
    ...     work.wait()
    ...     return x
    >>> dist.run_ranks(program, 2)
    [tensor([0., 0.]), tensor([1., 1.])]
    """
    work = _sent(tensor, dst, group, tag, group_dst)
    return None if work is None else work.in_background()


def _sent(
    tensor: Tensor, dst: int | None, group: Any, tag: int, group_dst: int | None
) -> Work | None:
    tensor = check_tensor(tensor, "isend", "tensor")
    ranks = member(group, "isend")
    if ranks is None:
        return None
    peer, tag = _to("isend", ranks, dst, group_dst), _check_tag(tag, "isend")
    carrier = ranks.carrier(tensor.device.type)
    array = readable(carrier, tensor)
    return ranks.start(
        described("send", tensor, f"to {ranks.ranks[peer]}"),
        carrier,
        lambda: carrier.send(array, peer, tag),
        None,
        [tensor],
        alike=False,
    )


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive into a tensor, from a rank or, without one, from whichever sends first. Do
    not read the tensor before the work is complete.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     if dist.get_rank() == 0:
    ...         return dist.send(plugrad.ones(2), dst=1)
    ...     x = plugrad.zeros(2)
    ...     work = dist.irecv(x, src=0)
    ...     work.wait()
    ...     return x
    >>> dist.run_ranks(program, 2)[1]
    tensor([1., 1.])
    """
    work = _received(tensor, src, group, tag, group_src)
    return None if work is None else work.in_background()


def _received(
    tensor: Tensor, src: int | None, group: Any, tag: int, group_src: int | None
) -> Work | None:
    tensor = check_tensor(tensor, "irecv", "tensor")
    ranks = member(group, "irecv")
    if ranks is None:
        return None
    anyone = src is None and group_src is None
    peer = ANY_SOURCE if anyone else root_of(ranks, src, group_src, "src")
    tag = _check_tag(tag, "irecv")
    carrier = ranks.carrier(tensor.device.type)
    array, written = writable(carrier, tensor)
    whom = "any rank" if anyone else str(ranks.ranks[peer])
    work = ranks.start(
        described("recv", tensor, f"from {whom}"),
        carrier,
        lambda: carrier.recv(array, peer, tag),
        written,
        [tensor],
        alike=False,
    )
    work.source = max(work.source, peer)
    return work


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a rank, and wait until it may be written to again.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     if dist.get_rank() == 0:
    ...         return dist.send(plugrad.ones(2), dst=1)
    ...     x = plugrad.zeros(2)
    ...     dist.recv(x, src=0)
    ...     return x
    >>> dist.run_ranks(program, 2)
    [None, tensor([1., 1.])]
    """
    work = _sent(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive into a tensor, from a rank or, without one, from whichever sends first.

    Returns:
        The sender, by its global number; -1 on ranks that are not in the group.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     if dist.get_rank() == 1:
    ...         return dist.send(plugrad.ones(2), dst=0)
    ...     x = plugrad.zeros(2)
    ...     sender = dist.recv(x)  # from any rank
    ...     return sender, x
    >>> dist.run_ranks(program, 2)[0]
    (1, tensor([1., 1.]))
    """
    work = _received(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: the tensor to send, or to receive into.
        peer: the other rank, by its global number; `group_peer` is its number in the group.
        tag: see `isend`.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     me, size = dist.get_rank(), dist.get_world_size()
    ...     x = plugrad.zeros(1)
    ...     send = dist.P2POp(dist.isend, plugrad.ones(1) * me, (me + 1) % size)
    ...     receive = dist.P2POp(dist.irecv, x, (me - 1) % size)
    ...     for work in dist.batch_isend_irecv([send, receive]):
    ...         work.wait()
    ...     return x
    >>> dist.run_ranks(program, 3)  # around a ring
    [tensor([2.]), tensor([0.]), tensor([1.])]
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``plugrad.distributed.isend`` or "
                "``plugrad.distributed.irecv``."
            )
        self.op = op
        self.tensor = check_tensor(tensor, "P2POp", "tensor")
        self.peer = peer
        self.group = group
        self.tag = tag
        self.group_peer = group_peer


def _carrier_of(item: P2POp) -> Any:
    """The group of the message; None on a rank that is not in it."""
    ranks = get_group(item.group, "batch_isend_irecv")
    return None if ranks is None else ranks.carrier(item.tensor.device.type)


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages at once; returns the work of each.

    >>> import plugrad, plugrad.distributed as dist
    >>> def program():
    ...     other = 1 - dist.get_rank()
    ...     x = plugrad.zeros(1)
    ...     messages = [
    ...         dist.P2POp(dist.isend, plugrad.ones(1) * dist.get_rank(), other),
    ...         dist.P2POp(dist.irecv, x, other),
    ...     ]
    ...     for work in dist.batch_isend_irecv(messages):
    ...         work.wait()
    ...     return x
    >>> dist.run_ranks(program, 2)  # both send and receive
    [tensor([1.]), tensor([0.])]
    """
    if not p2p_op_list or not all(isinstance(item, P2POp) for item in p2p_op_list):
        raise ValueError(
            "batch_isend_irecv(): p2p_op_list must be a list of P2POp, with one at least"
        )
    carriers = {_carrier_of(item) for item in p2p_op_list} - {None}
    with contextlib.ExitStack() as together:
        for carrier in carriers:
            together.enter_context(carrier.batch())
        found = [
            item.op(item.tensor, item.peer, item.group, item.tag, item.group_peer)
            for item in p2p_op_list
        ]
    return [work for work in found if work is not None]
