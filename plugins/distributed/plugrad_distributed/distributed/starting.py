"""Creating and destroying groups: `init_process_group`, `new_group` and `new_subgroups`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from plugrad_distributed.carriers.carrier import Carrier
from plugrad_distributed.carriers.registry import ALIASES, carrier_class
from plugrad_distributed.distributed.queries import (
    GroupMember,
    get_process_group_ranks,
    get_world_size,
    is_torchelastic_launched,
)
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import seconds
from plugrad_distributed.groups.world import current_world, default_group
from plugrad_distributed.launching.meeting import met
from plugrad_distributed.launching.rendezvous import in_query, rendezvous_of

__all__ = [
    "destroy_process_group",
    "init_process_group",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
]

DEFAULT_TIMEOUT: Final = timedelta(minutes=30)
# Variables that MPI's launchers set in a process that is one of several.
STARTED_BY_MPI: Final = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Create the group of all processes. Each process calls this once, before any other function of
    this module.

    Args:
        backend: the carrier: ``"mpi"``, ``"alone"`` (one process), ``"fake"`` (see `run_ranks`), or
            the name of another plugin's carrier; by device, ``"cpu:mpi,cuda:nccl"``. By default MPI
            if it started the process, else ``"alone"``.
        init_method: where processes meet if no MPI launcher started them. ``"env://"``, also meant
            by None: rank and size come from the variables `RANK` and `WORLD_SIZE`, as torchrun sets
            them, and rank 0 listens at `MASTER_ADDR` and `MASTER_PORT`. ``"tcp://host:port"``: rank
            0 listens there. ``"file:///path"``: rank 0 writes its address to this file, which must
            not exist yet. It is ignored under mpiexec and if `world_size` is 1.
        timeout: how long an operation may take, as a timedelta or in seconds; by default 30
            minutes.
        world_size: the number of processes; by default the launcher's.
        rank: this process's number; by default the launcher's.
        store: must be None; ignored if `world_size` is 1.
        group_name: the group's name.
        pg_options: options for the carrier.
        device_id: the device of this process; it becomes the current one if it has an index.

    Raises:
        ValueError: an argument is wrong, or the group exists already.
        PluginError: the backend's package is not installed.
        DistTimeoutError: a process did not arrive.
        DistNetworkError: rank 0 cannot listen, or the processes disagree about ranks or size.

    >>> import plugrad.distributed as dist
    >>> dist.init_process_group("alone")
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> dist.destroy_process_group()
    """
    world = current_world()
    if world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    limit = seconds(DEFAULT_TIMEOUT if timeout is None else timeout, "init_process_group")
    rank, world_size = _placed(*in_query(init_method, rank, world_size))
    alone = world_size == 1 and not _is_of_mpi()
    if store is not None and not alone:
        raise ValueError(
            "init_process_group(): store must be None: processes find each other through the "
            f"backend, got {type(store).__name__}"
        )
    wanted = _default_backend(world_size) if backend is None else backend
    kinds = {device: _carrier(name, alone) for device, name in _by_device(wanted).items()}
    with _meeting(kinds.values(), init_method, rank, world_size, limit):
        carriers = {
            device: kind.world(rank, world_size, pg_options, limit)
            for device, kind in kinds.items()
        }
    first = next(iter(carriers.values()))
    name = world.new_name(group_name)
    made = ProcessGroup(name, range(first.size), carriers, limit, wanted.lower(), "default_pg")
    world.add(made)
    world.default = made
    if device_id is not None:
        _use(device_id)


def _is_of_mpi() -> bool:
    """Whether an MPI launcher started this process. In a job of SLURM, processes of torchrun see
    SLURM's variables of torchrun itself, which do not count."""
    return not is_torchelastic_launched() and any(name in os.environ for name in STARTED_BY_MPI)


def _mpi_runs() -> bool:
    """Whether MPI was started in this process, which is possible only once."""
    loaded = sys.modules.get("mpi4py.MPI")
    return loaded is not None and bool(loaded.Is_initialized())


def _meeting(
    kinds: Collection[type[Carrier]],
    init_method: str | None,
    rank: int,
    world_size: int,
    limit: float,
) -> contextlib.AbstractContextManager[None]:
    """A block in which processes without an MPI launcher become ranks of one program, if a carrier
    needs it.

    Raises:
        ValueError: the carriers do not support the requested `init_method`, or a rank is missing.
    """
    if _is_of_mpi() or world_size == 1:
        return contextlib.nullcontext()
    if not any(kind.starts_mpi for kind in kinds):
        if init_method not in (None, "", "env://"):
            raise ValueError(
                "init_process_group(): init_method must be 'env://' or None, since the backend "
                f"has its own way to find the processes, got {init_method!r}"
            )
        return contextlib.nullcontext()
    if _mpi_runs() or (world_size == -1 and init_method is None):
        return contextlib.nullcontext()
    for name, value in (("rank", rank), ("world_size", world_size)):
        if value < 0:
            raise ValueError(
                f"init_process_group(): {name} must be given, by the argument or as environment "
                f"variable {name.upper()}, since no program of MPI started this process"
            )
    if rank >= world_size:
        raise ValueError(
            f"init_process_group(): rank must be in the interval [0, {world_size - 1}], got {rank}"
        )
    return met(rendezvous_of(init_method, os.environ), rank, world_size, limit)


def _carrier(name: str, alone: bool) -> type[Carrier]:
    """The carrier with this name. A single process needs no carrier that exists only under
    PyTorch's name."""
    return carrier_class("alone" if alone and name in ALIASES else name)


def _placed(rank: int, world_size: int) -> tuple[int, int]:
    """Rank and size, from the arguments or from the environment variables of torchrun."""
    if _is_of_mpi():
        return rank, world_size
    if rank == -1 and os.environ.get("RANK", "").isdecimal():
        rank = int(os.environ["RANK"])
    if world_size == -1 and os.environ.get("WORLD_SIZE", "").isdecimal():
        world_size = int(os.environ["WORLD_SIZE"])
    return rank, world_size


def _default_backend(world_size: int) -> str:
    """The backend of a process that names none.

    Raises:
        ValueError: srun started several processes without telling them how to meet.
    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    if world_size == -1 and tasks != "1" and not _is_of_mpi():
        # As groups of one each, they would all train the same and overwrite one another's files.
        raise ValueError(
            f"init_process_group(): srun started {tasks} processes, which MPI cannot connect: use "
            "`srun --mpi=pmi2` (MPICH) or `--mpi=pmix` (Open MPI), or `plugrad launch program.py` "
            "in the job; backend='alone' is for processes that work on their own"
        )
    several = os.environ.get("WORLD_SIZE", "1") != "1"
    return "mpi" if several or _is_of_mpi() else "alone"


def _by_device(backend: str) -> dict[str, str]:
    """Names of carriers by device type; "" is for all others.

    Raises:
        TypeError, ValueError: the text does not have this form.
    """
    if not isinstance(backend, str):
        raise TypeError(
            f"init_process_group(): backend must be a string, got {type(backend).__name__}"
        )
    found: dict[str, str] = {}
    for part in backend.lower().split(","):
        device, colon, name = part.strip().rpartition(":")
        if not name or (colon and not device) or device in found:
            raise ValueError(
                "init_process_group(): backend must be a name, or 'device:name' for each device, "
                f"with commas between, got {backend!r}"
            )
        found[device] = name
    return found


def _use(device: Any) -> None:
    import plugrad

    found = plugrad.device(device)
    choose = getattr(getattr(plugrad, found.type, None), "set_device", None)
    if found.index is not None and choose is not None:
        choose(found)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Destroy a group; without an argument, all groups including the default one.

    >>> import plugrad.distributed as dist
    >>> dist.init_process_group("alone")
    >>> dist.destroy_process_group()
    >>> dist.is_initialized()
    False
    """
    world = current_world()
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if group is None:
        default_group()
    if group is None or group is world.default:
        world.clear()
        world.made = 0
        return
    if group.name not in world.groups:
        raise ValueError("Invalid process group specified")
    world.remove(group)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | float | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Create a group of some of the ranks. All processes call this, in the same order, even those
    that will not be in it.

    Args:
        ranks: the global numbers of its ranks; by default all.
        timeout: how long an operation may take; by default as in the default group.
        backend: as in `init_process_group`; only the default group's is allowed.
        pg_options: accepted and ignored.
        use_local_synchronization: accepted and ignored: only members wait for one another.
        group_desc: its purpose, stored as `group.group_desc`.
        device_id: accepted and ignored.

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` on ranks that are not in it.

    Raises:
        ValueError: a rank does not exist or occurs twice.

    >>> import plugrad, plugrad.distributed as dist
    >>> def sum_of_the_pair():
    ...     pair = dist.new_group([0, 2])
    ...     x = plugrad.tensor([float(dist.get_rank())])
    ...     if pair is not dist.GroupMember.NON_GROUP_MEMBER:
    ...         dist.all_reduce(x, group=pair)
    ...     return x.item()
    >>> dist.run_ranks(sum_of_the_pair, 3)
    [2.0, 1.0, 2.0]
    """
    everyone = default_group()
    world = current_world()
    chosen = list(range(everyone.size())) if ranks is None else sorted(map(int, ranks))
    for rank in chosen:
        if not 0 <= rank < everyone.size():
            raise ValueError(
                f"new_group(): ranks must be in the interval [0, {everyone.size() - 1}], got {rank}"
            )
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"new_group(): a rank must not occur twice, got {list(ranks or ())}")
    if not chosen:
        raise ValueError("new_group(): ranks must name at least one rank, got none")
    if backend is not None and _by_device(backend) != _by_device(everyone.backend):
        raise ValueError(
            f"new_group(): backend must be {everyone.backend!r} as in the default group, got "
            f"{backend!r}"
        )
    limit = everyone.timeout if timeout is None else seconds(timeout, "new_group")
    name = world.new_name()
    if everyone.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    carriers: Mapping[str, Carrier] = {
        device: carrier.split(chosen, name.removesuffix(world.suffix))
        for device, carrier in everyone._carriers.items()
    }
    made = ProcessGroup(name, chosen, carriers, limit, everyone.backend, group_desc or "")
    world.add(made)
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | float | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Create groups of `group_size` neighbours each, by default of those on one machine; returns
    this rank's group, and all groups.

    Raises:
        ValueError: the ranks cannot be divided this way.

    >>> import plugrad.distributed as dist
    >>> def neighbours():
    ...     own, every = dist.new_subgroups(2)
    ...     return dist.get_process_group_ranks(own), len(every)
    >>> dist.run_ranks(neighbours, 4)
    [([0, 1], 2), ([0, 1], 2), ([2, 3], 2), ([2, 3], 2)]
    """
    world_size = get_world_size(group)
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if world_size < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({world_size})"
        )
    if world_size % group_size != 0:
        raise ValueError(
            f"The world size ({world_size}) must be divisible by group_size={group_size}"
        )
    everyone = get_process_group_ranks(group)
    lists = [everyone[at : at + group_size] for at in range(0, world_size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | float | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Create a group for each list of ranks; no rank may be in two. Returns this rank's group, or
    None, and all groups.

    >>> import plugrad.distributed as dist
    >>> def even_or_odd():
    ...     own, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    ...     return dist.get_process_group_ranks(own)
    >>> dist.run_ranks(even_or_odd, 4)
    [[0, 2], [1, 3], [0, 2], [1, 3]]
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    flat = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(flat)) < len(flat):
        raise ValueError(f"a rank must be in one subgroup only, got {ranks_per_subgroup_list}")
    found = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    own = [one for one in found if one is not GroupMember.NON_GROUP_MEMBER]
    return (own[0] if own else None), found
