"""Grids of ranks: checks of their shape and names, and the groups along their dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad_distributed.distributed.starting import new_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.world import default_group

__all__ = ["check_grid", "line_groups"]


def check_grid(ranks: Any, names: tuple[str, ...] | None) -> None:
    """Raise unless ranks occur once, and each dimension has a name of its own.

    Raises:
        RuntimeError: they do not.
    """
    if ranks.size == 0:
        raise RuntimeError("DeviceMesh: mesh must name at least one rank, got none")
    if len(np.unique(ranks)) < ranks.size:
        raise RuntimeError(f"DeviceMesh: a rank must not occur twice in mesh, got {ranks.tolist()}")
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError(
            "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names "
            f"{names}"
        )
    if len(names) != ranks.ndim:
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
            f"{len(names)} and len(mesh_shape):{ranks.ndim}."
        )


def line_groups(ranks: Any, names: tuple[str, ...] | None) -> list[ProcessGroup | None]:
    """This rank's group along each dimension. Every rank makes all groups in the same order,
    because their names contain a count."""
    everyone = default_group()
    if ranks.ndim == 1 and ranks.tolist() == list(everyone.ranks):
        return [everyone]
    found: list[ProcessGroup | None] = []
    for dim in range(ranks.ndim):
        mine: ProcessGroup | None = None
        for row in np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim]):
            name = names[dim] if names else f"dim_{dim}"
            # new_group sorts ranks, so the order of the mesh must be ascending.
            if row.tolist() != sorted(row.tolist()):
                raise RuntimeError(
                    f"DeviceMesh: ranks must rise along each dimension of mesh, got {row.tolist()}"
                )
            made = new_group(row.tolist(), group_desc=f"mesh_{name}")
            if isinstance(made, ProcessGroup):
                mine = made
        found.append(mine)
    return found
