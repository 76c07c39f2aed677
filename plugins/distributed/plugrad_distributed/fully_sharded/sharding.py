"""`fully_shard`: cuts the parameters of a module over ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import plugrad
from plugrad import Tensor
from plugrad.nn import Module
from plugrad_distributed.distributed.queries import get_world_size, is_initialized
from plugrad_distributed.distributed.starting import init_process_group
from plugrad_distributed.fully_sharded.group import ParameterGroup
from plugrad_distributed.fully_sharded.loading import watch_state
from plugrad_distributed.fully_sharded.module import become_sharded
from plugrad_distributed.fully_sharded.parameters import Place, ShardedParameter
from plugrad_distributed.fully_sharded.policies import (
    FULL_PRECISION,
    NO_OFFLOAD,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from plugrad_distributed.fully_sharded.unit import Unit, unit_of
from plugrad_distributed.mesh.device_mesh import DeviceMesh, init_device_mesh
from plugrad_distributed.tensor.dtensor import array_of
from plugrad_distributed.tensor.placement import Shard

__all__ = ["fully_shard"]

M = TypeVar("M")
# Marks tensors that were parameters before, so that later calls with them raise an error.
TAKEN = "_fully_shard_taken"


def fully_shard(
    module: M,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy = FULL_PRECISION,
    offload_policy: OffloadPolicy = NO_OFFLOAD,
    ignored_params: Iterable[Tensor] | None = None,
) -> M:
    """Cut the parameters of a module over ranks, in place; returns the module.

    Its parameters become DTensors, and each rank holds a part. The same holds for gradients and for
    the state of an optimizer that is created afterwards. Forward and backward gather the parameters
    before use and free them afterwards; backward then averages the gradients over the ranks.

    Parameters on the device meta get memory by a later `module.to_empty(device=...)`, on each rank
    for its part, and values by `load_state_dict` or `nn.init`.

    Parameters that are already DTensors, as after `parallelize_module`, are also DTensors in
    forward. Their mesh and `mesh` must be parts of one mesh, such as ``mesh_2d["tp"]`` and
    ``mesh_2d["dp"]``. Outside of forward they are distributed over both: each rank's part is cut
    again.

    A call makes one group of parameters that are gathered together: the parameters of the module
    that are not in a group yet. So call it for layers first, and for the model last. All ranks must
    have the same parameters and make the same calls.

    Args:
        module: a module, or a list of modules; their parameters become one group.
        mesh: a mesh of one dimension, or a named one of two: parameters are cut along the second
            dimension, and ranks along the first hold the same parts. By default all ranks.
        reshard_after_forward: whether to free gathered parameters after forward. By default they
            are freed, except the root's, which backward needs first. A number n means that n
            neighbouring ranks, such as the ranks of one machine, keep them together, so that
            backward gathers among fewer ranks. The size of the mesh means True, and 1 means False.
        shard_placement_fn: a function that returns the `Shard` of a parameter, or None for
            `Shard(0)`. Other dimensions than 0 must be divisible by the number of ranks.
        mp_policy: dtypes of computation and reduction.
        offload_policy: accepted; parameters stay on the device of the mesh.
        ignored_params: parameters that stay whole. Their gradients are not reduced.

    Raises:
        TypeError, ValueError: an argument does not fit; a parameter is a scalar, or is shared with
            a module that was sharded before; parameters of the group have several dtypes.
        NotImplementedError: `reshard_after_forward` is a smaller number of ranks, and the mesh is
            not part of one with all ranks.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.fsdp import fully_shard
    >>> def program():
    ...     model = plugrad.nn.Sequential(plugrad.nn.Linear(4, 8), plugrad.nn.Linear(8, 2))
    ...     for layer in model:
    ...         fully_shard(layer)
    ...     fully_shard(model)
    ...     optimizer = plugrad.optim.Adam(model.parameters())
    ...     model(plugrad.ones(3, 4)).sum().backward()
    ...     optimizer.step()
    ...     return [p.to_local().numel() for p in model.parameters()]
    >>> dist.run_ranks(program, 2)[0]
    [16, 4, 8, 1]
    """
    modules = _modules(module)
    ignored = {id(parameter) for parameter in ignored_params or ()}
    places = _places(modules, ignored)
    mesh = _mesh(mesh, places)
    for parameter, found in places:
        _check_parallel(parameter, mesh, found[0].full_name)
    left = _resharding(reshard_after_forward, mesh)
    count = mesh.size(mesh.ndim - 1)
    group = None
    if places:
        group = _group(modules, places, mesh, mp_policy, shard_placement_fn)
        group.reshard_after_forward = left > 1 or count == 1
        if 1 < left < count:
            group.neighbours = mesh._neighbours_of(left)
        watch_state(group)
    unit = Unit(modules, mp_policy, reshard_after_forward is None)
    unit.group = group
    for each in modules:
        become_sharded(each)
    return module


def _modules(module: Any) -> list[Any]:
    """The modules to shard together.

    Raises:
        TypeError: it is something else.
        ValueError: one is a ModuleList, which has no forward, or was sharded before.
    """
    given = [module] if isinstance(module, Module) else module
    if not isinstance(given, Sequence) or not given:
        raise TypeError(
            f"fully_shard(): module must be a Module or a list of them, got {type(module).__name__}"
        )
    for each in given:
        if not isinstance(each, Module):
            raise TypeError(
                f"fully_shard(): module must be a Module or a list of them, got a list with "
                f"{type(each).__name__}"
            )
        if isinstance(each, plugrad.nn.ModuleList | plugrad.nn.ModuleDict):
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {each}"
            )
        if unit_of(each) is not None:
            raise ValueError(f"fully_shard was applied to this module before: {each}")
    below = {id(sub) for each in given for sub in list(each.modules())[1:]}
    # Parameters of modules inside others of the list belong to those.
    return [each for each in given if id(each) not in below]


def _managed(module: Any, prefix: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """A module and its submodules that are in no unit, with their names."""
    seen.add(id(module))
    yield prefix, module
    for name, child in module.named_children():
        if unit_of(child) is None and id(child) not in seen:
            yield from _managed(child, f"{prefix}{name}.", seen)


def _places(modules: Sequence[Any], ignored: set[int]) -> list[tuple[Tensor, list[Place]]]:
    """The parameters of a group, each with all its places."""
    found: dict[int, tuple[Tensor, list[Place]]] = {}
    seen: set[int] = set()
    for root in modules:
        for prefix, module in _managed(root, "", seen):
            for name, parameter in module._parameters.items():
                if parameter is None or id(parameter) in ignored:
                    continue
                full_name = f"{prefix}{name}"
                _check(parameter, full_name)
                entry = found.setdefault(id(parameter), (parameter, []))
                entry[1].append(Place(module, name, full_name))
    return list(found.values())


def _check(parameter: Any, name: str) -> None:
    """Whether a parameter can be cut."""
    if parameter.ndim == 0:
        raise ValueError(
            "fully_shard doesn't support scalar parameters. "
            f"Change {name} to a 1D tensor with numel equal to 1."
        )
    if getattr(parameter, TAKEN, False):
        raise ValueError(
            f"Parameter {name!r} is shared with a parameter already managed by another FSDP group. "
            "For shared/tied parameters, use fully_shard([module_a, module_b]) to place them in "
            "the same FSDP group."
        )


def _mesh(mesh: DeviceMesh | None, places: Sequence[tuple[Tensor, Any]]) -> DeviceMesh:
    if mesh is None:
        if not is_initialized():
            init_process_group()
        device_type = _device_type(places)
        device_type = "cpu" if device_type == "meta" else device_type
        return init_device_mesh(device_type, (get_world_size(),))
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(f"fully_shard(): mesh must be a DeviceMesh, got {type(mesh).__name__}")
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    return mesh


def _device_type(places: Sequence[tuple[Tensor, Any]]) -> str:
    if not places:
        return "cpu"
    array = array_of(places[0][0])
    return places[0][0].device.type if array is None else array.mesh.device_type


def _check_parallel(parameter: Tensor, mesh: DeviceMesh, name: str) -> None:
    """Whether a parameter that is a DTensor can be cut over a mesh."""
    array = array_of(parameter)
    if array is None:
        return
    if any(one.is_partial() for one in array.placements):
        raise ValueError(
            f"fully_shard: parameter {name!r} is a DTensor with the placements "
            f"{array.placements}: redistribute what is Partial first"
        )
    own, other = set(array.mesh._root_dims), set(mesh._root_dims)
    if array.mesh._root is not mesh._root or own & other:
        raise ValueError(
            "FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh but "
            f"got: DP mesh {mesh!r} and {array.mesh!r} of parameter {name!r}. Make one mesh of "
            "two dimensions with names, and pass its parts"
        )


def _resharding(value: Any, mesh: DeviceMesh) -> int:
    """The number of ranks that together keep the parameters after forward.

    Raises:
        ValueError: it is neither a bool nor a divisor of the number of ranks.
    """
    count = mesh.size(mesh.ndim - 1)
    if value is None or isinstance(value, bool):
        return 1 if value is False else count
    if not isinstance(value, int):
        raise ValueError(
            "reshard_after_forward should be a bool or an int representing the group size to "
            f"reshard to, not {value}"
        )
    if value < 1 or count % value:
        raise ValueError(
            "If passing reshard_after_forward as an int, it should be a factor of "
            f"{count}, not {value}"
        )
    return value


def _group(
    modules: Sequence[Any],
    places: Sequence[tuple[Tensor, list[Place]]],
    mesh: DeviceMesh,
    policy: MixedPrecisionPolicy,
    placement: Callable[[Any], Shard | None] | None,
) -> ParameterGroup:
    dtypes = {parameter.dtype for parameter, _ in places}
    if len(dtypes) > 1:
        raise ValueError(
            "FSDP expects uniform original parameter dtype but got "
            f"{sorted(str(dtype) for dtype in dtypes)}"
        )
    dims = [_dim(parameter, found[0].full_name, mesh, placement) for parameter, found in places]
    parameters = []
    for (parameter, found), dim in zip(places, dims, strict=True):
        parameters.append(ShardedParameter(found, parameter, mesh, dim))
        setattr(parameter, TAKEN, True)
    name = ", ".join(type(module).__name__ for module in modules)
    return ParameterGroup(parameters, mesh, policy, name)


def _dim(
    parameter: Tensor, name: str, mesh: DeviceMesh, placement: Callable[[Any], Shard | None] | None
) -> int:
    """The dimension along which a parameter is cut."""
    found = None if placement is None else placement(parameter)
    if found is None:
        return 0
    if not isinstance(found, Shard):
        raise TypeError(
            f"fully_shard(): shard_placement_fn must give a Shard or None for {name!r}, got "
            f"{type(found).__name__}"
        )
    dim = found.dim + parameter.ndim if found.dim < 0 else found.dim
    if not 0 <= dim < parameter.ndim:
        raise ValueError(
            f"Shard dim {found.dim} is invalid for {parameter.ndim}D tensor: {name!r} of shape "
            f"{list(parameter.shape)}"
        )
    count = mesh.size(mesh.ndim - 1)
    array = array_of(parameter)
    shape = parameter.shape if array is None else array.local.shape
    if dim and shape[dim] % count:
        raise NotImplementedError(
            f"FSDP does not support uneven sharding on dim {dim}: {name!r} of shape "
            f"{list(shape)} (world size: {count})"
        )
    return dim
