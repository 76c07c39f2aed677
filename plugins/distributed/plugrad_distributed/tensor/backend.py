"""The backend behind the dispatch key `Sharded`.

A DTensor is a tensor of its own backend: its array is a `ShardedArray`, and its keys are
`AutogradSharded` and `Sharded`. Everything above the backends comes from the core and works as for
any tensor: autograd, hooks, views and their versions, forward mode, `plugrad.func`. The table of
propagation rules is this backend's table of kernels. A rule calls operators again, on this rank's
parts, at the key of their device.

Each mesh is a device of this backend, ``sharded:0``, ``sharded:1``, in the order of first use. So a
tensor that a model makes on ``x.device`` is a replicated DTensor like `x`, and a call that mixes
plain tensors with DTensors raises a device error. PyTorch shows the device of the parts instead, so
such programs must convert tensors explicitly.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.plugins import Backend, DeviceQueue
from plugrad.plugins.strides import set_placement
from plugrad.plugins.tracing import generators, tensor_of
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.placement import Replicate
from plugrad_distributed.tensor.redistribution import redistribute_local

__all__ = [
    "NAME",
    "MeshGenerator",
    "ShardedBackend",
    "as_tensor",
    "device_of",
    "host_generator",
    "keep",
    "mesh_at",
    "whole",
    "write_back",
]

NAME = "sharded"

_lock = threading.Lock()
_meshes: list[DeviceMesh] = []
_numbers: dict[DeviceMesh, int] = {}


def device_of(mesh: DeviceMesh) -> Any:
    """The device that represents a mesh."""
    number = _numbers.get(mesh)
    if number is None:
        set_placement(keep)
        with _lock:
            number = _numbers.setdefault(mesh, len(_meshes))
            if number == len(_meshes):
                _meshes.append(mesh)
    return plugrad.device(NAME, number)


def mesh_at(index: int) -> DeviceMesh:
    """The mesh that a device with this index represents.

    Raises:
        RuntimeError: there is none.
    """
    if not 0 <= index < len(_meshes):
        raise RuntimeError(
            f"device '{NAME}:{index}' is not a mesh: tensors are on {len(_meshes)} meshes"
        )
    return _meshes[index]


def host_generator(mesh: DeviceMesh) -> Any:
    """The host's generator that backs a mesh's default generator."""
    # Asking for its device first makes a new mesh count among the backend's devices.
    index = device_of(mesh).index
    return generators(NAME)[index].host


def as_tensor(array: ShardedArray) -> Tensor:
    """A tensor around an array of this backend, outside any graph."""
    spec = array.spec
    if spec is None:
        dtype, device = array.local.dtype, device_of(array.mesh)
    else:
        if spec.device is None:
            spec.device = device_of(spec.mesh)
        dtype, device = spec.dtype, spec.device
    made: Any = tensor_of(array, dtype, device)
    return made  # type: ignore[no-any-return]  # its class is Tensor


def whole(array: ShardedArray) -> Tensor:
    """The whole tensor, on each rank: a collective."""
    target = (Replicate(),) * array.mesh.ndim
    return redistribute_local(array.local, array.mesh, array.placements, target, array.shape)


def keep(array: Any, former: Any) -> Any:
    """An array with the placement of the one that it replaces in a tensor: see `set_placement`.

    So the gradient of a leaf has the leaf's placement, and an optimizer's step does not
    communicate.
    """
    if not isinstance(array, ShardedArray) or not isinstance(former, ShardedArray):
        return array
    if array.placements == former.placements or array.mesh != former.mesh:
        return array
    placements = former.placements
    local = redistribute_local(array.local, array.mesh, array.placements, placements, array.shape)
    return ShardedArray(local, array.mesh, placements, array.shape, array.steps)


class ShardedBackend(Backend):
    """Arrays that are spread over a mesh of ranks."""

    def __init__(self) -> None:
        super().__init__(NAME, array_type=ShardedArray, key_name="Sharded")

    def device_count(self) -> int:
        # At least two: a backend with one device names it without a number, but the first mesh must
        # keep its name when a second one is made.
        return max(len(_meshes), 2) if _meshes else 0

    def problem(self) -> str | None:
        if _meshes:
            return None
        return "no tensor is on a mesh; plugrad.distributed.tensor.distribute_tensor makes one"

    def describe(self) -> Mapping[str, str]:
        return {"meshes": str(len(_meshes))}

    def kernels(self) -> Any:
        """The kernels with which the core writes and copies. All other kernels work on tensors;
        `plugrad_distributed.tensor.registration` registers them."""
        return {"copy_": _copy, "_to_copy": _cast}

    def native_dtype(self, dtype: Any) -> Any:
        return dtype

    def dtype_of(self, array: Any) -> Any:
        return array.dtype

    def strides(self, array: Any) -> tuple[int, ...]:
        found: tuple[int, ...] = array.steps
        return found

    def from_host(self, array: Any, index: int) -> ShardedArray:
        """The same elements, which each rank already has."""
        mesh = mesh_at(index)
        local = plugrad.from_numpy(array).to(mesh.device_type)
        return ShardedArray(local, mesh, (Replicate(),) * mesh.ndim, array.shape)

    def to_host(self, array: Any) -> Any:
        """All elements: communicates, unless each rank has the whole."""
        return whole(array).numpy(force=True)

    def copy_to_device(self, array: Any, index: int, non_blocking: bool = False) -> ShardedArray:
        mesh = mesh_at(index)
        if mesh == array.mesh:
            local = array.local.clone()
            return ShardedArray(local, mesh, array.placements, array.shape, array.steps)
        local = whole(array).to(mesh.device_type, copy=True)
        return ShardedArray(local, mesh, (Replicate(),) * mesh.ndim, array.shape)

    def make_queue(self, index: int) -> DeviceQueue:
        return _CallersQueue()

    def make_generator(self, index: int) -> Any:
        return MeshGenerator()

    def printed(self, array: Any) -> str | None:
        """Prints without communication, so that a single rank can print."""
        return (
            f"DTensor(local_tensor={array.local!r}, device_mesh={array.mesh!r}, "
            f"placements={array.placements!r})"
        )


def _cast(array: ShardedArray, dtype: Any) -> ShardedArray:
    """A copy in another dtype, under the same placements."""
    local = array.local.to(dtype, copy=True)
    return ShardedArray(local, array.mesh, array.placements, array.shape, array.steps)


def _copy(target: ShardedArray, source: ShardedArray) -> ShardedArray:
    """Write a tensor of the same or a broadcast shape."""
    if source.shape != target.shape:
        replicated = (Replicate(),) * source.mesh.ndim
        full = whole(source).expand(target.shape)
        source = ShardedArray(full, source.mesh, replicated, target.shape)
    local = redistribute_local(
        source.local, target.mesh, source.placements, target.placements, target.shape
    )
    target.local.copy_(local)
    write_back(target)
    return target


def write_back(array: ShardedArray) -> None:
    """Propagate a write from a view to its source, if the view's elements had to be moved."""
    if array.origin is None:
        return
    base, op, arguments, position = array.origin
    full = whole(base)
    if full is base.local:
        full = full.clone()
    view = op.call((full, *arguments))
    (view if position < 0 else view[position]).copy_(whole(array))
    everywhere = (Replicate(),) * base.mesh.ndim
    base.local.copy_(redistribute_local(full, base.mesh, everywhere, base.placements, base.shape))
    write_back(base)


class _CallersQueue(DeviceQueue):
    """Backward passes stay on the calling thread: collectives run in the order of the program, and
    if ranks are threads, hooks see the caller's rank."""

    def is_bound(self) -> bool:
        return True


class MeshGenerator:
    """Random numbers of a mesh: a stream of the host, which is the same on all ranks.

    Each rank draws for the whole tensor and keeps its part, so the numbers equal one process's with
    the same seed.
    """

    def __init__(self) -> None:
        # PyTorch's default seed: it must be the same on all ranks, even if the program sets none.
        self.host = plugrad.Generator("cpu")
        self.host.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> MeshGenerator:
        self.host.manual_seed(seed)
        return self

    def seed(self) -> int:
        found: int = self.host.initial_seed()
        self.host.manual_seed(found)
        return found

    def initial_seed(self) -> int:
        found: int = self.host.initial_seed()
        return found

    def get_state(self) -> Any:
        return self.host.get_state()

    def set_state(self, state: Any) -> None:
        self.host.set_state(state)
