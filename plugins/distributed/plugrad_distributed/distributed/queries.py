"""Queries about groups: which group an argument means, its ranks, and what is available."""

from __future__ import annotations

import os
from typing import Any

from plugrad_distributed.carriers.registry import ALIASES, carrier_class, carrier_names
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.world import current_world, default_group, group_named

__all__ = [
    "GroupMember",
    "get_backend",
    "get_default_group",
    "get_global_rank",
    "get_group",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
]


class _NoMember:
    """The result of `new_group` on ranks that are not in the group."""

    def __repr__(self) -> str:
        return "<not a member of this group>"


class _GroupsOfARank(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks, or None."""
        return current_world().default


class GroupMember(metaclass=_GroupsOfARank):
    """`WORLD`, the group of all ranks, and the object that stands for a group without this rank.

    >>> import plugrad.distributed as dist
    >>> def is_outside():
    ...     return dist.new_group([0, 1]) is dist.GroupMember.NON_GROUP_MEMBER
    >>> dist.run_ranks(is_outside, 3)
    [False, False, True]
    """

    NON_GROUP_MEMBER: Any = _NoMember()


class group(metaclass=_GroupsOfARank):
    """`group.WORLD` is the group of all ranks.

    >>> import plugrad.distributed as dist
    >>> dist.group.WORLD is None
    True
    >>> dist.run_ranks(lambda: dist.group.WORLD.size(), 2)
    [2, 2]
    """


def get_group(group: ProcessGroup | str | None, function: str) -> ProcessGroup | None:
    """The group for an argument: the default one for None, a group by its name; returns None for a
    group that this rank is not in."""
    if group is None:
        return default_group()
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return group_named(group)
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    raise TypeError(
        f"{function}(): group must be a ProcessGroup or None, got {type(group).__name__}"
    )


def get_default_group() -> ProcessGroup:
    """The group of all ranks; ValueError before `init_process_group`."""
    return default_group()


def is_available() -> bool:
    """Whether `plugrad.distributed` can be used: True.

    >>> import plugrad.distributed as dist
    >>> dist.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called, and `destroy_process_group` was not.

    >>> import plugrad.distributed as dist
    >>> dist.is_initialized()
    False
    >>> dist.init_process_group("alone")
    >>> dist.is_initialized()
    True
    >>> dist.destroy_process_group()
    """
    return current_world().default is not None


def is_backend_available(backend: str) -> bool:
    """Whether a plugin provides the carrier, and its requirements are installed.

    >>> import plugrad.distributed as dist
    >>> dist.is_backend_available("alone"), dist.is_backend_available("pigeons")
    (True, False)
    """
    name = ALIASES.get(backend.lower(), backend.lower())
    if name not in carrier_names():
        return False
    try:
        carrier_class(name)
    except Exception:
        return False
    return True


def is_mpi_available() -> bool:
    """Whether ``"mpi"`` can be used: mpi4py and an MPI library are installed.

    >>> import plugrad.distributed as dist
    >>> dist.init_process_group("mpi" if dist.is_mpi_available() else "alone", world_size=1, rank=0)
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    return is_backend_available("mpi")


def is_gloo_available() -> bool:
    """Whether programs that request ``"gloo"`` run: MPI replaces it.

    >>> import plugrad.distributed as dist
    >>> dist.is_gloo_available() == dist.is_mpi_available()
    True
    """
    return is_mpi_available()


def is_nccl_available() -> bool:
    """Whether ``"nccl"`` can be used.

    >>> import plugrad.distributed as dist
    >>> dist.is_nccl_available() == dist.is_backend_available("nccl")
    True
    """
    return is_backend_available("nccl")


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process.

    >>> import plugrad.distributed as dist
    >>> dist.is_torchelastic_launched()
    False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_rank(group: Any = None) -> int:
    """This process's number in the group; -1 if it is not in it.

    >>> import plugrad.distributed as dist
    >>> dist.run_ranks(dist.get_rank, 3)
    [0, 1, 2]
    >>> def in_a_pair():
    ...     pair = dist.new_group([1, 2])
    ...     return dist.get_rank(pair)
    >>> dist.run_ranks(in_a_pair, 3)
    [-1, 0, 1]
    """
    found = get_group(group, "get_rank")
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes in the group; -1 if this one is not in it.

    >>> import plugrad.distributed as dist
    >>> dist.run_ranks(dist.get_world_size, 2)
    [2, 2]
    >>> dist.run_ranks(lambda: dist.get_world_size(dist.new_group([0])), 2)
    [1, -1]
    """
    found = get_group(group, "get_world_size")
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> str:
    """The name of the carrier of a group.

    >>> import plugrad.distributed as dist
    >>> dist.init_process_group("alone")
    >>> dist.get_backend()
    'alone'
    >>> dist.destroy_process_group()
    """
    found = get_group(group, "get_backend")
    if found is None:
        raise ValueError("Invalid process group specified")
    return found.backend


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The global numbers of the group's processes.

    >>> import plugrad.distributed as dist
    >>> dist.run_ranks(lambda: dist.get_process_group_ranks(dist.new_group([0, 2])), 3)
    [[0, 2], [], [0, 2]]
    """
    found = get_group(group, "get_process_group_ranks")
    return [] if found is None else list(found.ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global number of a rank in the group.

    >>> import plugrad.distributed as dist
    >>> def second_of_the_pair():
    ...     pair = dist.new_group([1, 3])
    ...     return dist.get_global_rank(pair, 1) if dist.get_rank(pair) >= 0 else None
    >>> dist.run_ranks(second_of_the_pair, 4)
    [None, 3, None, 3]
    """
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in the group of a global rank.

    >>> import plugrad.distributed as dist
    >>> def number_of_rank_3():
    ...     pair = dist.new_group([1, 3])
    ...     return dist.get_group_rank(pair, 3) if dist.get_rank(pair) >= 0 else None
    >>> dist.run_ranks(number_of_rank_3, 4)
    [None, 1, None, 1]
    """
    return group.local(global_rank, "get_group_rank()")


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, from `LOCAL_RANK`.

    >>> import os
    >>> import plugrad.distributed as dist
    >>> os.environ["LOCAL_RANK"] = "2"
    >>> dist.get_node_local_rank()
    2
    >>> del os.environ["LOCAL_RANK"]
    >>> dist.get_node_local_rank(fallback_rank=0)
    0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context and "
        "want the code to run locally instead."
    )
