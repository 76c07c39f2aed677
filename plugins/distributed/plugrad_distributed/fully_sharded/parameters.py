"""The parameters of a group: as parts, which modules have most of the time, and as wholes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.nn import Parameter
from plugrad_distributed.fully_sharded.layout import Slot
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import as_tensor
from plugrad_distributed.tensor.dtensor import array_of
from plugrad_distributed.tensor.placement import Placements, Replicate, Shard

__all__ = ["Place", "ShardedParameter", "own_part", "placements_on", "sharded_tensor"]


@dataclass(frozen=True)
class Place:
    """Where a parameter is: `module.name`; and its name in the module that was sharded."""

    module: Any
    name: str
    full_name: str


def placements_on(mesh: DeviceMesh, dim: int) -> Placements:
    """Cut along the last dimension of the mesh, replicated along the others."""
    return (*(Replicate() for _ in range(mesh.ndim - 1)), Shard(dim))


def sharded_tensor(local: Tensor, mesh: DeviceMesh, slot: Slot) -> Tensor:
    """The DTensor of which this rank has a part."""
    return as_tensor(ShardedArray(local, mesh, placements_on(mesh, slot.dim), slot.shape))


def own_part(whole: Tensor, mesh: DeviceMesh, slot: Slot) -> Tensor:
    """This rank's part of a tensor that it has as a whole, in memory of its own."""
    rank = mesh.get_local_rank(mesh.ndim - 1)
    size = slot.part_of(rank)[slot.dim]
    start = min(slot.part[slot.dim] * rank, slot.shape[slot.dim])
    found: Tensor = whole.narrow(slot.dim, start, size).clone(
        memory_format=plugrad.contiguous_format
    )
    return found


class ShardedParameter:
    """One parameter of a group.

    Attributes:
        places: where modules have it; several if it is shared.
        slot: its shape, and how it is cut.
        sharded: what modules have outside of forward and backward, a DTensor.
    """

    def __init__(
        self, places: Sequence[Place], parameter: Tensor, mesh: DeviceMesh, dim: int
    ) -> None:
        self.places = list(places)
        self.mesh = mesh
        self.slot = Slot(tuple(parameter.shape), dim, mesh.size(mesh.ndim - 1))
        with plugrad.no_grad():
            found = parameter.detach()
            # What has no memory yet gets it by `to_empty`, for this rank's part only.
            found = found if found.is_meta else found.to(mesh.device_type)
            local = own_part(found, mesh, self.slot)
            made = sharded_tensor(local, mesh, self.slot)
        self.sharded: Tensor = Parameter(made, requires_grad=parameter.requires_grad)
        self.install(self.sharded)

    @property
    def name(self) -> str:
        """Its name in the module that was sharded."""
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
        """Let modules have a tensor in the parameter's place."""
        for place in self.places:
            place.module._parameters[place.name] = tensor

    def installed(self) -> Tensor:
        """What modules have."""
        found: Tensor = self.places[0].module._parameters[self.places[0].name]
        return found

    def adopt(self) -> None:
        """Take over a DTensor that took the parameter's place in the module, as
        `load_state_dict(assign=True)` puts one there.

        Raises:
            RuntimeError: it lies otherwise, or is not a DTensor.
        """
        found = self.installed()
        if found is self.sharded:
            return
        array = array_of(found)
        wanted = placements_on(self.mesh, self.slot.dim)
        if (
            array is None
            or array.mesh != self.mesh
            or array.placements != wanted
            or array.shape != self.slot.shape
        ):
            came = (
                f"a {type(found).__name__} of shape {list(found.shape)}"
                if array is None
                else f"a DTensor of shape {list(array.shape)} with {array.placements}"
            )
            raise RuntimeError(
                f"fully_shard: parameter {self.name!r} must be a DTensor of shape "
                f"{list(self.slot.shape)} with placements {wanted} on {self.mesh!r}, got {came}"
            )
        self.sharded = found
        self.install(found)

    def add_gradient(self, local: Tensor) -> None:
        """Add this rank's part of a gradient to `.grad` of the sharded parameter."""
        parameter: Any = self.sharded
        made = sharded_tensor(local.to(parameter.dtype), self.mesh, self.slot)
        if parameter.grad is None:
            parameter.grad = made
        else:
            parameter.grad.add_(made)
        hooks: dict[int, Callable[[Any], None]] = parameter._post_accumulate_grad_hooks or {}
        for hook in list(hooks.values()):
            hook(parameter)
