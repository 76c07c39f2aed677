"""The devices that a captured step runs on and its results go to, if arrays are sharded."""

from __future__ import annotations

from typing import Any

from plugrad_jax.kernels.placement import sharding
from plugrad_jax.sharding.mixing import SPREAD, joined, widest_of
from plugrad_jax.sharding.placing import is_wide, mesh_of

Array = Any


class Placement:
    """Where one program runs.

    Args:
        count: the number of its results.
        named: the mesh that the step names, or None.
        place: the device that the step computes on if nothing is sharded; None if unknown.

    Attributes:
        anywhere: whether it was traced so that it can run on several devices.
        mesh: the devices that it runs on; None for a single one.
        results: the placements of its results, None if XLA decides; empty until known.
    """

    def __init__(self, count: int, named: Any, place: Any) -> None:
        self.anywhere = SPREAD.used
        self.mesh: Any = None
        self.results: list[Any] = []
        self._count = count
        self._named = named
        self._place = place
        # Whether the results were settled for a single device.
        self._single = False

    def look_at(self, arrays: list[Array]) -> bool:
        """Take the mesh of these inputs; whether the placement of the program must be specified."""
        widest = widest_of(arrays)
        self.mesh = self._named if widest is None else mesh_of(widest)
        return self.mesh is not None or self.anywhere

    def settle(self, tensors: list[Any]) -> bool:
        """Have the first results where these tensors are; whether that is new."""
        if self.mesh is None:
            if self._single:
                return False
            # Results of numbers alone have no array to follow.
            there = None if self._place is None else sharding(self._place.index or 0)
            wanted = [there] * self._count
        else:
            arrays = [tensor.array for tensor in tensors]
            wanted = [array.sharding if is_wide(array) else None for array in arrays]
            wanted += [None] * (self._count - len(arrays))
        self._single = self.mesh is None
        if wanted == self.results:
            return False
        self.results = wanted
        return True

    def joined(self, arrays: list[Array]) -> list[Array]:
        """The inputs on all devices that the program runs on."""
        mesh = self.mesh
        return arrays if mesh is None else [joined(array, mesh) for array in arrays]
