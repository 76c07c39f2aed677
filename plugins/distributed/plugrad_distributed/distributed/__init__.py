"""`plugrad.distributed`: cooperating processes, under the names of `torch.distributed`.

`init_process_group` makes the group of all processes; collectives such as `all_reduce` move tensors
between them. `plugrad.distributed.functional` has collectives with gradients.

>>> import plugrad, plugrad.distributed as dist
>>> dist.init_process_group("alone")
>>> x = plugrad.ones(3)
>>> dist.all_reduce(x)
>>> x
tensor([1., 1., 1.])
>>> dist.destroy_process_group()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad_distributed.carriers.carrier import Carrier
from plugrad_distributed.data_parallel.buckets import GradBucket
from plugrad_distributed.distributed import functional
from plugrad_distributed.distributed.backend import Backend
from plugrad_distributed.distributed.collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from plugrad_distributed.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from plugrad_distributed.distributed.points import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from plugrad_distributed.distributed.queries import (
    GroupMember,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
)
from plugrad_distributed.distributed.ranks import run_ranks
from plugrad_distributed.distributed.starting import (
    destroy_process_group,
    init_process_group,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from plugrad_distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistTimeoutError,
)
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.reduce_op import ReduceOp

if TYPE_CHECKING:
    from plugrad_distributed.mesh.device_mesh import DeviceMesh, init_device_mesh

__all__ = [
    "Backend",
    "Carrier",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistTimeoutError",
    "GradBucket",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "functional",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "run_ranks",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]


def __getattr__(name: str) -> Any:
    """Loads meshes, which are built on groups, at their first use."""
    if name not in ("DeviceMesh", "init_device_mesh"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plugrad_distributed.mesh import device_mesh

    found = getattr(device_mesh, name)
    globals()[name] = found
    return found
