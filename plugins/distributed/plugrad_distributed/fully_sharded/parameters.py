"""The parameters of a group: sharded, as modules have them most of the time, and whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.nn import Parameter
from plugrad_distributed.fully_sharded.layout import Slot
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.array import ShardedArray, row_major
from plugrad_distributed.tensor.backend import as_tensor
from plugrad_distributed.tensor.conversions import resolved
from plugrad_distributed.tensor.dtensor import array_of
from plugrad_distributed.tensor.placement import Placement, Replicate, Shard
from plugrad_distributed.tensor.redistribution import redistribute_local
from plugrad_distributed.tensor.rules.random import cut
from plugrad_distributed.tensor.spec import DTensorSpec

__all__ = ["Place", "ShardedParameter"]


@dataclass(frozen=True)
class Place:
    """Where a parameter is: `module.name`, and its name in the sharded module."""

    module: Any
    name: str
    full_name: str


def _spec(parameter: Tensor, mesh: DeviceMesh, dim: int) -> DTensorSpec:
    """The spec of a parameter after it is cut along the last dimension of a mesh.

    For a parameter that is already a DTensor, the mesh has the dimensions of both: its own come
    first, then the one along which it is cut now, because that cuts each rank's part.
    """
    array = array_of(parameter)
    placements: list[Placement] = [Replicate()] * (mesh.ndim - 1)
    if array is not None:
        shards = mesh if mesh.ndim == 1 else mesh[(mesh.mesh_dim_names or ())[-1]]
        replicas = [] if mesh.ndim == 1 else [mesh[(mesh.mesh_dim_names or ())[0]]]
        mesh = DeviceMesh._concatenate([*replicas, array.mesh, shards])
        placements += array.placements
    placements.append(Shard(dim))
    shape = tuple(parameter.shape)
    return DTensorSpec(mesh, tuple(placements), shape, row_major(shape), parameter.dtype)


class ShardedParameter:
    """One parameter of a group.

    Attributes:
        places: where it is in modules; several if it is shared.
        spec: its placement outside of forward and backward.
        parallel: its placement in forward and backward, if it is a DTensor there too.
        slot: the shape of this rank's tensor in forward, and how that is cut.
        sharded: the DTensor in modules outside of forward and backward.
    """

    def __init__(
        self, places: Sequence[Place], parameter: Tensor, mesh: DeviceMesh, dim: int
    ) -> None:
        self.places = list(places)
        self.spec = _spec(parameter, mesh, dim)
        self.parallel: DTensorSpec | None = None
        found = parameter.detach()
        array = array_of(found)
        if array is not None:
            found = array.local
            self.parallel = DTensorSpec(
                array.mesh, array.placements, array.shape, array.steps, array.dtype
            )
        self.slot = Slot(tuple(found.shape), dim, mesh.size(mesh.ndim - 1))
        with plugrad.no_grad():
            # Parameters without memory get it by `to_empty`, for this rank's part only.
            found = found if found.is_meta else found.to(mesh.device_type)
            rank = mesh.get_local_rank(mesh.ndim - 1)
            start = min(self.slot.part[dim] * rank, self.slot.shape[dim])
            local = found.narrow(dim, start, self.slot.part_of(rank)[dim])
            made = self.tensor(local.clone(memory_format=plugrad.contiguous_format))
        self.sharded: Tensor = Parameter(made, requires_grad=parameter.requires_grad)
        self.install(self.sharded)

    def tensor(self, local: Tensor) -> Tensor:
        """The DTensor with the parameter's placement and this local part."""
        return as_tensor(ShardedArray(local, self.spec.mesh, self.spec.placements, self.spec.shape))

    def part(self, whole: Tensor) -> Tensor:
        """The same from a tensor that every rank has."""
        local = cut(whole.to(self.spec.mesh.device_type), self.spec.mesh, self.spec.placements)
        return self.tensor(local.clone(memory_format=plugrad.contiguous_format))

    def in_forward(self, gathered: Tensor) -> Tensor:
        """The tensor in modules during forward, from the gathered one."""
        spec = self.parallel
        if spec is None:
            return gathered
        return as_tensor(ShardedArray(gathered, spec.mesh, spec.placements, spec.shape, spec.steps))

    def own_gradient(self, grad: Tensor) -> Tensor:
        """This rank's part of the gradient of `in_forward`."""
        spec = self.parallel
        if spec is None or array_of(grad) is None:
            return grad
        array = resolved(grad)
        return redistribute_local(
            array.local, spec.mesh, array.placements, spec.placements, spec.shape
        )

    @property
    def name(self) -> str:
        """Its name in the sharded module."""
        return self.places[0].full_name

    @property
    def local(self) -> Tensor:
        """This rank's part."""
        array: ShardedArray = self.sharded.array
        return array.local

    @property
    def version(self) -> tuple[int, ...]:
        """Changes with each write to it, or to this rank's part."""
        return id(self.sharded), self.sharded._version, self.local._version

    def install(self, tensor: Tensor) -> None:
        """Set a tensor in the parameter's place in the modules."""
        for place in self.places:
            place.module._parameters[place.name] = tensor

    def installed(self) -> Tensor:
        """The tensor that modules have now."""
        found: Tensor = self.places[0].module._parameters[self.places[0].name]
        return found

    def adopt(self) -> None:
        """Adopt a DTensor that replaced the parameter in the module, as
        `load_state_dict(assign=True)` does.

        Raises:
            RuntimeError: it has another placement, or is not a DTensor.
        """
        found = self.installed()
        if found is self.sharded:
            return
        array = array_of(found)
        spec = self.spec
        if (
            array is None
            or array.mesh != spec.mesh
            or array.placements != spec.placements
            or array.shape != spec.shape
        ):
            came = (
                f"a {type(found).__name__} of shape {list(found.shape)}"
                if array is None
                else f"a DTensor of shape {list(array.shape)} with {array.placements}"
            )
            raise RuntimeError(
                f"fully_shard: parameter {self.name!r} must be a DTensor of shape "
                f"{list(spec.shape)} with placements {spec.placements} on {spec.mesh!r}, got {came}"
            )
        self.sharded = found
        self.install(found)

    def add_gradient(self, local: Tensor) -> None:
        """Add this rank's part of a gradient to `.grad` of the sharded parameter."""
        parameter: Any = self.sharded
        made = self.tensor(local.to(parameter.dtype))
        if parameter.grad is None:
            parameter.grad = made
        else:
            parameter.grad.add_(made)
        hooks: dict[int, Callable[[Any], None]] = parameter._post_accumulate_grad_hooks or {}
        for hook in list(hooks.values()):
            hook(parameter)
