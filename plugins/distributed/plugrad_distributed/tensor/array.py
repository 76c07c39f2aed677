"""The array of a DTensor: this rank's tensor, the mesh, and placements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.placement import Placements
from plugrad_distributed.tensor.spec import DTensorSpec

__all__ = ["Origin", "ShardedArray", "row_major"]


Origin = tuple["ShardedArray", Any, tuple[Any, ...], int]


class ShardedArray:
    """The array of a tensor with the kernel key `Sharded`.

    Attributes:
        local: this rank's tensor, outside any graph.
        mesh: the ranks that hold parts of it.
        placements: one for each dimension of the mesh.
        shape: the shape of the whole.
        steps: the strides of the whole in elements, as if it were in one memory.
        spec: the same without the elements, once a rule has requested it.
        origin: for a view with elements that had to be moved between ranks, its source, which
            receives writes: the array, the operator, its other arguments, and the index of the
            result.
    """

    __slots__ = ("local", "mesh", "origin", "placements", "shape", "spec", "steps")

    def __init__(
        self,
        local: Tensor,
        mesh: DeviceMesh,
        placements: Placements,
        shape: Sequence[int],
        steps: Sequence[int] | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.local = local
        self.mesh = mesh
        self.placements = placements
        self.shape = tuple(shape)
        self.steps = row_major(self.shape) if steps is None else tuple(steps)
        self.origin = origin
        self.spec: DTensorSpec | None = None

    @classmethod
    def of(cls, local: Tensor, spec: DTensorSpec, origin: Origin | None = None) -> ShardedArray:
        """The array with the placements of `spec`."""
        made = cls.__new__(cls)
        made.local = local
        made.mesh = spec.mesh
        made.placements = spec.placements
        made.shape = spec.shape
        made.steps = spec.steps
        made.origin = origin
        made.spec = spec
        return made

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.local.dtype

    def __repr__(self) -> str:
        return f"ShardedArray({self.shape}, {self.placements} on {self.mesh!r})"


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor in row-major order."""
    found: list[int] = []
    step = 1
    for size in reversed(shape):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))
