"""Functions that make DTensors, and modules with DTensors as parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh, current_mesh
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import as_tensor
from plugrad_distributed.tensor.conversions import Redistribute
from plugrad_distributed.tensor.dtensor import DTensor, array_of
from plugrad_distributed.tensor.placement import (
    Partial,
    Placement,
    Replicate,
    local_part,
    normalized,
)
from plugrad_distributed.tensor.redistribution import redistribute_local
from plugrad_distributed.tensor.rules.random import generator_for

__all__ = [
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Make a DTensor from a whole tensor. The result is a leaf.

    Args:
        tensor: the whole tensor, with the same shape on all ranks.
        device_mesh: by default the mesh of the ``with mesh:`` block.
        placements: `Shard` or `Replicate` for each dimension of the mesh; by default `Replicate`.
        src_data_rank: the rank that provides the elements, by its number along each dimension of
            the mesh. None: each rank keeps its part of its own tensor, and nothing is sent.

    Raises:
        RuntimeError: the tensor is not a leaf, a placement is `Partial`, or the tensor is a DTensor
            with other placements.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, distribute_tensor
    >>> def shapes():
    ...     mesh = init_device_mesh("cpu", (2,))
    ...     return distribute_tensor(plugrad.ones(5, 2), mesh, [Shard(0)]).to_local().shape
    >>> dist.run_ranks(shapes, 2)
    [plugrad.Size([3, 2]), plugrad.Size([2, 2])]
    """
    mesh = current_mesh() if device_mesh is None else device_mesh
    wanted = normalized(placements, mesh, tensor.ndim, "distribute_tensor")
    if any(isinstance(one, Partial) for one in wanted):
        raise RuntimeError(f"distribute_tensor(): placements must not be Partial, got {wanted}")
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor!"
        )
    array = array_of(tensor)
    if array is not None:
        if array.mesh != mesh or array.placements != wanted:
            raise RuntimeError(
                f"Cannot distribute a DTensor with placements {array.placements} on {array.mesh!r} "
                f"to placements {wanted} on {mesh!r}: use redistribute"
            )
        same: Any = tensor
        return same  # type: ignore[no-any-return]  # a tensor is a DTensor by its key
    local = tensor.detach().to(mesh.device_type)
    if src_data_rank is not None:
        for mesh_dim in range(mesh.ndim):
            group = mesh.get_group(mesh_dim)
            local = plugrad.ops.distributed.broadcast(local, src_data_rank, group.name)
    everywhere = (Replicate(),) * mesh.ndim
    part = redistribute_local(local, mesh, everywhere, wanted, tensor.shape)
    made: Any = as_tensor(ShardedArray(part, mesh, wanted, tensor.shape))
    made.requires_grad_(tensor.requires_grad)
    return made  # type: ignore[no-any-return]  # as above


def _made(
    size: Sequence[Any],
    placements: Sequence[Placement] | None,
    mesh: DeviceMesh | None,
    function: str,
    requires_grad: bool,
    make: Callable[[tuple[int, ...]], Tensor],
    whole: bool = False,
) -> DTensor:
    """A DTensor for which `make` returns the parts, or the whole."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    mesh = current_mesh() if mesh is None else mesh
    wanted = normalized(placements, mesh, len(shape), function)
    everywhere = (Replicate(),) * mesh.ndim
    if whole or any(isinstance(one, Partial) for one in wanted):
        local = make(shape).to(mesh.device_type)
        local = redistribute_local(local, mesh, everywhere, wanted, shape)
    else:
        local = make(local_part(shape, mesh, wanted)[0]).to(mesh.device_type)
    made: Any = as_tensor(ShardedArray(local, mesh, wanted, shape))
    made.requires_grad_(requires_grad)
    return made  # type: ignore[no-any-return]  # a tensor is a DTensor by its key


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A DTensor of zeros.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, zeros
    >>> def shapes():
    ...     d = zeros(4, 3, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(0)])
    ...     return d.shape, d.to_local().shape
    >>> dist.run_ranks(shapes, 2)[0]
    (plugrad.Size([4, 3]), plugrad.Size([2, 3]))
    """
    return _made(
        size,
        placements,
        device_mesh,
        "zeros",
        requires_grad,
        lambda s: plugrad.zeros(s, dtype=dtype),
    )


def ones(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A DTensor of ones.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, ones
    >>> def total():
    ...     d = ones(4, 3, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(0)])
    ...     return d.to_local().sum().item(), d.sum().full_tensor().item()
    >>> dist.run_ranks(total, 2)[0]
    (6.0, 12.0)
    """
    return _made(
        size, placements, device_mesh, "ones", requires_grad, lambda s: plugrad.ones(s, dtype=dtype)
    )


def empty(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A DTensor with uninitialized elements.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, empty
    >>> def filled():
    ...     d = empty(4, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(0)])
    ...     return d.fill_(2.0).to_local()
    >>> dist.run_ranks(filled, 2)[0]
    tensor([2., 2.])
    """
    return _made(
        size,
        placements,
        device_mesh,
        "empty",
        requires_grad,
        lambda s: plugrad.empty(s, dtype=dtype),
    )


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A DTensor with all elements equal to a number.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, full
    >>> def part():
    ...     d = full((4,), 7.0, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(0)])
    ...     return d.to_local()
    >>> dist.run_ranks(part, 2)[0]
    tensor([7., 7.])
    """
    return _made(
        (size,),
        placements,
        device_mesh,
        "full",
        requires_grad,
        lambda s: plugrad.full(s, fill_value, dtype=dtype),
    )


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A DTensor of random numbers from [0, 1), the same as in one process with the same seed.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, rand
    >>> def in_range():
    ...     d = rand(4, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(0)])
    ...     whole = d.full_tensor()
    ...     return whole.shape, bool(((whole >= 0) & (whole < 1)).all())
    >>> dist.run_ranks(in_range, 2)[0]
    (plugrad.Size([4]), True)
    """
    mesh = current_mesh() if device_mesh is None else device_mesh
    generator = generator_for(mesh, None)
    return _made(
        size,
        placements,
        mesh,
        "rand",
        requires_grad,
        lambda s: plugrad.rand(s, dtype=dtype, generator=generator),
        True,
    )


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A DTensor of normal random numbers, the same as in one process with the same seed.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, randn
    >>> def shapes():
    ...     d = randn(5, 2, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(0)])
    ...     return d.to_local().shape
    >>> dist.run_ranks(shapes, 2)
    [plugrad.Size([3, 2]), plugrad.Size([2, 2])]
    """
    mesh = current_mesh() if device_mesh is None else device_mesh
    generator = generator_for(mesh, None)
    return _made(
        size,
        placements,
        mesh,
        "randn",
        requires_grad,
        lambda s: plugrad.randn(s, dtype=dtype, generator=generator),
        True,
    )


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """Turn the parameters and buffers of a module into DTensors, in place; returns the module.

    Args:
        device_mesh: by default the mesh of the ``with mesh:`` block.
        partition_fn: ``partition_fn(name, submodule, mesh)`` shards parameters by replacing them
            with DTensors. All others become replicated.
        input_fn: ``input_fn(module, inputs, mesh)`` returns the arguments of `forward`.
        output_fn: ``output_fn(module, outputs, mesh)`` returns the result of the module.

    Raises:
        RuntimeError: the module was distributed before.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, distribute_module, distribute_tensor
    >>> def shard_rows(name, module, mesh):
    ...     weight = distribute_tensor(module.weight.detach(), mesh, [Shard(0)])
    ...     module.weight = plugrad.nn.Parameter(weight)
    >>> def placements():
    ...     mesh = init_device_mesh("cpu", (2,))
    ...     layer = distribute_module(plugrad.nn.Linear(3, 4), mesh, shard_rows)
    ...     return layer.weight.placements, layer.bias.placements
    >>> dist.run_ranks(placements, 2)[0]
    ((Shard(dim=0),), (Replicate(),))
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been "
            "called on this module!"
        )
    mesh = current_mesh() if device_mesh is None else device_mesh
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
        _replicate(submodule, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    module._distribute_module_applied = True
    return module


def _replicate(module: Any, mesh: DeviceMesh) -> None:
    """Turn everything that is not a DTensor yet into a replicated one."""
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and array_of(parameter) is None:
            made = distribute_tensor(parameter.detach(), mesh)
            module.register_parameter(
                name, plugrad.nn.Parameter(made, requires_grad=parameter.requires_grad)
            )
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and array_of(buffer) is None:
            module._buffers[name] = distribute_tensor(buffer, mesh)


def redistributed(tensor: Any, placements: Sequence[Placement]) -> Any:
    """A DTensor under other placements, differentiable; the DTensor itself if it already has
    them."""
    wanted = normalized(placements, tensor.device_mesh, tensor.ndim, "redistribute")
    return tensor if tensor.placements == wanted else Redistribute.apply(tensor, wanted, None)
