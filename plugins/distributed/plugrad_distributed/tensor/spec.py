"""The inputs and results of rules: shapes and placements in place of tensors, and choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.placement import Placement, Placements, Replicate, part_of

__all__ = ["Choice", "DTensorSpec", "Rule", "aligned", "alike", "replicated", "spec_of", "specs_in"]


@dataclass(eq=False, slots=True)
class DTensorSpec:
    """A DTensor without its elements, for rules. It is immutable; `spec_of` returns the same object
    for the same attributes, so plans are found by identity.

    Attributes:
        mesh: the ranks.
        placements: one for each dimension of the mesh.
        shape: the shape of the whole.
        steps: the strides of the whole.
        dtype: the type of the elements.
        device: the device of the DTensor, once one has been made.
    """

    mesh: DeviceMesh
    placements: Placements
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    dtype: Any
    device: Any = field(default=None, repr=False)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def device_mesh(self) -> DeviceMesh:
        """`mesh`."""
        return self.mesh

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def divides(self, dim: int) -> bool:
        """Whether a dimension can be cut into equal parts over any dimensions of the mesh."""
        return self.shape[dim] % self.mesh.size() == 0

    def fills(self, dim: int) -> bool:
        """Whether no rank's part is empty if a dimension is sharded over the whole mesh."""
        count = self.mesh.size()
        return part_of(self.shape[dim], count, count - 1)[0] > 0


# Cleared when there are too many.
MOST_SPECS = 4096

_specs: dict[Any, DTensorSpec] = {}


def spec_of(
    mesh: DeviceMesh,
    placements: Placements,
    shape: tuple[int, ...],
    steps: tuple[int, ...],
    dtype: Any,
) -> DTensorSpec:
    """The spec with these attributes."""
    key = (mesh, placements, shape, steps, dtype)
    found = _specs.get(key)
    if found is None:
        if len(_specs) >= MOST_SPECS:
            _specs.clear()
        found = _specs.setdefault(key, DTensorSpec(*key))
    return found


# Placements of the results, and of the arguments in order, along one dimension of a mesh: None for
# a value that is not a tensor, a list for a list of tensors.
Choice = tuple[Sequence[Any], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Rule:
    """How an operator handles DTensors.

    Attributes:
        choices: a function from the call's arguments, with specs in place of tensors, to the
            `Choice`s that are possible along a dimension of the mesh. All replicated is always
            possible and not listed.
        local: a function that runs on this rank's parts in place of the operator itself. It gets
            the call and the arguments with parts.
        shapes: a function from the arguments to the shapes of the whole results, for operators
            where tensors on `meta` do not give them.
    """

    choices: Callable[..., Sequence[Choice]]
    local: Callable[[Any, list[Any]], Any] | None = None
    shapes: Callable[..., Sequence[Any]] | None = None


def specs_in(args: Sequence[Any]) -> list[DTensorSpec]:
    """All specs among arguments and in lists."""
    found: list[DTensorSpec] = []
    for value in args:
        if isinstance(value, DTensorSpec):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(item for item in value if isinstance(item, DTensorSpec))
    return found


def aligned(args: Sequence[Any], placement: Callable[[DTensorSpec], Placement]) -> list[Any]:
    """A placement for each tensor among arguments, in the form of a `Choice`."""
    found: list[Any] = []
    for value in args:
        if isinstance(value, DTensorSpec):
            found.append(placement(value))
        elif isinstance(value, (list, tuple)):
            found.append(
                [placement(item) if isinstance(item, DTensorSpec) else None for item in value]
            )
        else:
            found.append(None)
    return found


def alike(args: Sequence[Any], placement: Placement) -> list[Any]:
    """One placement for each tensor among arguments."""
    return aligned(args, lambda spec: placement)


def replicated(args: Sequence[Any]) -> list[Any]:
    """`Replicate` for each tensor among arguments."""
    return alike(args, Replicate())
