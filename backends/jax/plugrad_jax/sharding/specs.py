"""Turns a user's placement of a tensor into a JAX sharding that fits the tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.sharding import Mesh, NamedSharding, PartitionSpec

from plugrad_jax.sharding.mixing import shown
from plugrad_jax.sharding.placing import EVERYWHERE, sharding_by_xla, spec_of


def named_sharding(
    mesh: Any, spec: Any, shape: Sequence[int], who: str = "shard()", what: str = "a tensor"
) -> NamedSharding:
    """The sharding that `mesh` and `spec` mean for a tensor of a shape.

    Args:
        mesh: a mesh of devices, or a `NamedSharding` and no `spec`.
        spec: what each dimension is split over: a `PartitionSpec`, a tuple of its entries, or a
            `NamedSharding` of the mesh.
        who: the function, for messages.
        what: the tensor, for messages.

    Raises:
        TypeError: they are something else.
        ValueError: they do not fit the shape.
    """
    if isinstance(mesh, NamedSharding) and spec is None:
        mesh, spec = mesh.mesh, mesh.spec
    if isinstance(spec, NamedSharding):
        if mesh is not None and spec.mesh != mesh:
            raise ValueError(f"{who}: spec is a NamedSharding of another mesh than {mesh}")
        mesh, spec = spec.mesh, spec.spec
    if not isinstance(mesh, Mesh):
        raise TypeError(f"{who}: mesh must be a jax.sharding.Mesh, got {type(mesh).__name__}")
    if spec is None:
        spec = ()
    if not isinstance(spec, (PartitionSpec, tuple)):
        raise TypeError(
            f"{who}: spec must be a PartitionSpec, a tuple or a NamedSharding, got "
            f"{type(spec).__name__}"
        )
    if not isinstance(spec, PartitionSpec):
        spec = spec_of(*spec)
    wrong = _problem(mesh, spec, tuple(shape))
    if wrong:
        made = sharding_by_xla(mesh, EVERYWHERE)
        raise ValueError(
            f"{who}: {spec} does not fit {what} of shape {list(shape)} on {shown(made)}: {wrong}"
        )
    return sharding_by_xla(mesh, spec)


def _problem(mesh: Mesh, spec: PartitionSpec, shape: tuple[int, ...]) -> str:
    """Why a spec does not fit; empty if it does."""
    if len(spec) > len(shape):
        return f"it is about {len(spec)} dimensions, and there are {len(shape)}"
    seen: set[str] = set()
    for dim, entry in enumerate(spec):
        if entry is PartitionSpec.UNCONSTRAINED:
            return "PartitionSpec.UNCONSTRAINED says nothing, and the tensor needs a place"
        names = entry if isinstance(entry, tuple) else () if entry is None else (entry,)
        parts = 1
        for name in names:
            if name not in mesh.shape:
                return f"the mesh has no axis {name!r}"
            if name in seen:
                return f"axis {name!r} is in it twice"
            seen.add(name)
            parts *= mesh.shape[name]
        if shape[dim] % parts:
            return f"{shape[dim]} elements of dimension {dim} cannot be divided by {parts}"
    return ""
