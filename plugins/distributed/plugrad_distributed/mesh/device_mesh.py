"""DeviceMesh: ranks in a grid, and the groups along its dimensions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.queries import get_rank, is_initialized
from plugrad_distributed.distributed.starting import init_process_group, new_group
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.world import default_group
from plugrad_distributed.mesh.grids import check_grid, line_groups

__all__ = ["DeviceMesh", "current_mesh", "init_device_mesh"]

_blocks = threading.local()


class DeviceMesh:
    """Ranks in a grid. Each line along a dimension is a group.

    All ranks, even those outside a mesh, make the same meshes in the same order.

    Args:
        device_type: the device type of the ranks: ``"cpu"``, ``"cuda"``.
        mesh: the ranks' numbers, in nested lists, an array or a tensor of integers.
        mesh_dim_names: a name for each dimension.

    Raises:
        RuntimeError: the names do not fit, a rank occurs twice, or there are fewer ranks.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import DeviceMesh
    >>> def place():
    ...     mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))
    ...     return mesh.get_coordinate(), mesh["tp"].mesh.tolist()
    >>> dist.run_ranks(place, 4)[3]
    ((1, 1), [2, 3])
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        _groups: Sequence[ProcessGroup | None] | None = None,
        _root: DeviceMesh | None = None,
        _root_dims: tuple[int, ...] = (),
    ) -> None:
        ranks = np.array(mesh.tolist() if isinstance(mesh, Tensor) else mesh, dtype=np.int64)
        names = tuple(mesh_dim_names) if mesh_dim_names else None
        check_grid(ranks, names)
        self._device_type = device_type
        self._ranks = ranks
        self._names = names
        self._root = self if _root is None else _root
        self._root_dims = _root_dims or tuple(range(ranks.ndim))
        self._flattened: dict[str, DeviceMesh] = {}
        self._neighbours: dict[Any, ProcessGroup] = {}
        if not is_initialized():
            init_process_group()
        self._everyone = default_group()
        if ranks.size > default_group().size() or ranks.max() >= default_group().size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {default_group().size()}, but "
                f"found {ranks.size} ranks, the highest of which is {ranks.max()}!"
            )
        # Used in every call on DTensors, so it is computed once.
        numbers = tuple(ranks.reshape(-1).tolist())
        self._identity = (self.shape, numbers, device_type, names, id(self._everyone))
        self._hash = hash(self._identity)
        found = np.argwhere(ranks == get_rank())
        self._coordinate = tuple(int(place) for place in found[0]) if len(found) else None
        self._groups = line_groups(ranks, names) if _groups is None else list(_groups)

    @property
    def device_type(self) -> str:
        """The device type of the ranks.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> dist.run_ranks(lambda: init_device_mesh("cpu", (2,)).device_type, 2)[0]
        'cpu'
        """
        return self._device_type

    @property
    def mesh(self) -> Tensor:
        """The ranks' numbers.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> dist.run_ranks(lambda: init_device_mesh("cpu", (2, 2)).mesh, 4)[0]
        tensor([[0, 1],
                [2, 3]], dtype=plugrad.int32)
        """
        found: Tensor = plugrad.tensor(self._ranks.tolist(), dtype=plugrad.int32, device="cpu")
        return found

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> def names():
        ...     mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
        ...     return mesh.mesh_dim_names, mesh["tp"].mesh_dim_names
        >>> dist.run_ranks(names, 2)[0]
        (('dp', 'tp'), ('tp',))
        """
        return self._names

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along each dimension.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> dist.run_ranks(lambda: init_device_mesh("cpu", (1, 2)).shape, 2)[0]
        (1, 2)
        """
        return tuple(self._ranks.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> dist.run_ranks(lambda: init_device_mesh("cpu", (1, 2)).ndim, 2)[0]
        2
        """
        return self._ranks.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, in all or along a dimension.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> def sizes():
        ...     mesh = init_device_mesh("cpu", (2, 3))
        ...     return mesh.size(), mesh.size(0), mesh.size(1)
        >>> dist.run_ranks(sizes, 6)[0]
        (6, 2, 3)
        """
        return int(self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim])

    def get_rank(self) -> int:
        """This process's global rank.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import DeviceMesh
        >>> dist.run_ranks(lambda: DeviceMesh("cpu", [1, 2]).get_rank(), 3)
        [0, 1, 2]
        """
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The position of this rank in the grid; None if it is not in it.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import DeviceMesh
        >>> dist.run_ranks(lambda: DeviceMesh("cpu", [1, 2]).get_coordinate(), 3)
        [None, (0,), (1,)]
        """
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's number along a dimension, which can be omitted if there is only one.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> def numbers():
        ...     mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        ...     return mesh.get_local_rank("dp"), mesh["tp"].get_local_rank()
        >>> dist.run_ranks(numbers, 4)
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        group = self.get_group(mesh_dim)
        return group.rank()

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """This rank's group along a dimension.

        Raises:
            RuntimeError: there are several dimensions and none is named; or this rank is not in
                the mesh.
            KeyError: there is no dimension with this name.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> def sum_along_tp():
        ...     mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        ...     x = plugrad.tensor([float(dist.get_rank())])
        ...     dist.all_reduce(x, group=mesh.get_group("tp"))
        ...     return x.item()
        >>> dist.run_ranks(sum_along_tp, 4)
        [1.0, 1.0, 5.0, 5.0]
        """
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions, so mesh_dim needs to be "
                    "specified. If you want to get the list of all the ProcessGroups in the "
                    "DeviceMesh, please use `get_all_groups()` instead."
                )
            mesh_dim = 0
        if isinstance(mesh_dim, str):
            if mesh_dim in self._root._flattened:
                return self._root._flattened[mesh_dim].get_group()
            mesh_dim = self._dim_named(mesh_dim)
        found = self._groups[mesh_dim]
        if found is None:
            raise RuntimeError(f"rank {get_rank()} is not in {self!r}")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups along all dimensions.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> def ranks():
        ...     return [group.ranks for group in init_device_mesh("cpu", (2, 2)).get_all_groups()]
        >>> dist.run_ranks(ranks, 4)[3]
        [(1, 3), (2, 3)]
        """
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _dim_named(self, name: str) -> int:
        if self._names is None:
            raise KeyError("No `mesh_dim_names` found.")
        if name not in self._names:
            raise KeyError(
                f"Mesh dimension '{name}' does not exist. Available mesh dimensions are: "
                f"mesh_dim_names={self._names}"
            )
        return self._names.index(name)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """This rank's part of the mesh along some dimensions.

        Raises:
            RuntimeError: the mesh has no names.
            KeyError: a name does not exist, or the names are not in the mesh's order.
        """
        if self._names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        wanted = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if wanted == self._names:
            return self
        if len(wanted) == 1 and wanted[0] in self._root._flattened and self is self._root:
            return self._root._flattened[wanted[0]]
        valid = [*self._names, *self._root._flattened]
        if any(name not in self._names for name in wanted):
            raise KeyError(
                f"Invalid mesh_dim_names {wanted} specified. Valid mesh_dim_names are {valid}."
            )
        dims = [self._names.index(name) for name in wanted]
        if dims != sorted(set(dims)):
            raise KeyError(
                f"Invalid mesh_dim_names {wanted} specified. Mesh dim indices should be in "
                "ascending order."
            )
        here = self._coordinate or (0,) * self.ndim
        index = tuple(slice(None) if dim in dims else here[dim] for dim in range(self.ndim))
        return DeviceMesh(
            self._device_type,
            self._ranks[index],
            mesh_dim_names=wanted,
            _groups=[self._groups[dim] for dim in dims],
            _root=self._root,
            _root_dims=tuple(self._root_dims[dim] for dim in dims),
        )

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The same ranks along one dimension. All ranks of the root mesh call it.

        Args:
            mesh_dim_name: by default the names of the dimensions, joined by ``_``.
        """
        name = mesh_dim_name or "_".join(self._names or [f"dim{d}" for d in self._root_dims])
        root = self._root
        if name in (root._names or ()):
            raise ValueError(f"{name} already exists for dimensions of {root!r}")
        known = root._flattened.get(name)
        if known is not None:
            if known.size() != self.size():
                raise ValueError(f"Flatten mesh with mesh_dim_name {name} has been created before")
            return known
        others = [dim for dim in range(root.ndim) if dim not in self._root_dims]
        rows = root._ranks.transpose(*others, *self._root_dims).reshape(-1, self.size())
        group: ProcessGroup | None = None
        mine = rows[0]
        for row in rows:
            made = new_group(row.tolist(), group_desc=f"mesh_{name}")
            if isinstance(made, ProcessGroup):
                group, mine = made, row
        flat = DeviceMesh(
            self._device_type,
            mine,
            mesh_dim_names=(name,),
            _groups=[group],
            _root=root,
            _root_dims=self._root_dims,
        )
        root._flattened[name] = flat
        return flat

    def _neighbours_of(self, count: int) -> ProcessGroup:
        """This rank's group of `count` neighbours along the last dimension. All ranks call this.

        Raises:
            NotImplementedError: the mesh is part of one that does not have all ranks.
        """
        root = self._root
        dims = self._root_dims if self.ndim == 1 else self._root_dims[-1:]
        found = root._neighbours.get((dims, count))
        if found is not None:
            return found
        if root.size() != default_group().size():
            raise NotImplementedError(
                f"{root!r} does not have all {default_group().size()} ranks, so the others cannot "
                "help to make groups of neighbours"
            )
        others = [dim for dim in range(root.ndim) if dim not in dims]
        for row in root._ranks.transpose(*others, *dims).reshape(-1, count):
            made = new_group(row.tolist(), group_desc=f"neighbours_{count}")
            if isinstance(made, ProcessGroup):
                root._neighbours[dims, count] = made
        return root._neighbours[dims, count]

    @staticmethod
    def _concatenate(device_mesh_list: Sequence[DeviceMesh]) -> DeviceMesh:
        """Join the dimensions of several parts of a mesh, in the given order.

        Raises:
            ValueError: they are not parts of one mesh, or share dimensions.
        """
        parts = list(device_mesh_list)
        root = parts[0]._root
        dims = [dim for part in parts for dim in part._root_dims]
        if any(part._root is not root for part in parts) or len(set(dims)) < len(dims):
            raise ValueError(
                "DeviceMesh: meshes to concatenate must be parts of one mesh without a dimension "
                f"in common, got {', '.join(map(repr, parts))}"
            )
        others = [dim for dim in range(root.ndim) if dim not in dims]
        here = root._coordinate or (0,) * root.ndim
        ranks = root._ranks.transpose(*others, *dims)[tuple(here[dim] for dim in others)]
        named = all(part._names for part in parts)
        return DeviceMesh(
            parts[0]._device_type,
            ranks.reshape([size for part in parts for size in part.shape]),
            mesh_dim_names=[name for part in parts for name in part._names or ()] or None
            if named
            else None,
            _groups=[group for part in parts for group in part._groups],
            _root=root,
            _root_dims=tuple(dims),
        )

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """A mesh over existing groups, one for each dimension.

        Args:
            group: a group, or one for each dimension; then `mesh` gives the positions of the ranks.

        Raises:
            ValueError: `mesh` does not fit the groups.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import DeviceMesh
        >>> def mesh():
        ...     own, _ = dist.new_subgroups(2)
        ...     return DeviceMesh.from_group(own, "cpu", mesh_dim_names=("tp",))
        >>> dist.run_ranks(mesh, 4)[3]
        DeviceMesh((tp=2), 'cpu', ranks=[2, 3])
        """
        if isinstance(group, ProcessGroup):
            ranks = list(group.ranks)
            given = None if mesh is None else np.array(mesh).reshape(-1).tolist()
            if given is not None and given != ranks:
                raise ValueError(f"Invalid mesh {given} for ProcessGroup with ranks {ranks}")
            return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group])
        groups = list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        ranks_of = np.array(mesh.tolist() if isinstance(mesh, Tensor) else mesh)
        if ranks_of.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                f"{ranks_of.tolist()} and {len(groups)} ProcessGroups"
            )
        return DeviceMesh(device_type, ranks_of, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh) and self._identity == other._identity
        )

    def __hash__(self) -> int:
        return self._hash

    def __enter__(self) -> DeviceMesh:
        _stack().append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _stack().pop()

    def __repr__(self) -> str:
        if self._names is None:
            dims = str(self.shape)
        else:
            named = zip(self._names, self.shape, strict=True)
            dims = f"({', '.join(f'{name}={size}' for name, size in named)})"
        return f"DeviceMesh({dims}, {self._device_type!r}, ranks={self._ranks.tolist()})"


def _stack() -> list[DeviceMesh]:
    found: list[DeviceMesh] | None = getattr(_blocks, "stack", None)
    if found is None:
        found = _blocks.stack = []
    return found


def current_mesh() -> DeviceMesh:
    """The mesh of the innermost ``with mesh:`` block of this thread.

    Raises:
        RuntimeError: there is none.
    """
    stack = _stack()
    if not stack:
        raise RuntimeError("No device mesh is currently active!")
    return stack[-1]


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
) -> DeviceMesh:
    """A mesh with this shape, of the first ranks in order.

    It creates the default group if there is none yet. All ranks call it with the same shape.

    Args:
        device_type: the device type of the ranks, without an index: ``"cpu"``, ``"cuda"``.
        mesh_shape: the number of ranks along each dimension.
        mesh_dim_names: a name for each dimension.

    Raises:
        RuntimeError: names and shape do not fit, or there are too few ranks.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> dist.run_ranks(lambda: init_device_mesh("cpu", (2, 2)).get_coordinate(), 4)
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    shape = tuple(mesh_shape)
    if mesh_dim_names is not None:
        check_grid(np.arange(int(np.prod(shape))).reshape(shape), tuple(mesh_dim_names))
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. If you maintained a "
            "'plugrad.device' object, it's recommended to pass in 'device.type'."
        )
    ranks = np.arange(int(np.prod(shape))).reshape(shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
