"""DTensor: a tensor distributed over a mesh of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.mesh.device_mesh import DeviceMesh, current_mesh
from plugrad_distributed.tensor import conversions
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.placement import (
    Partial,
    Placement,
    Placements,
    Replicate,
    normalized,
)

__all__ = ["DTensor", "array_of"]


def array_of(tensor: object) -> ShardedArray | None:
    """The array of a DTensor; None for any other object."""
    if not isinstance(tensor, Tensor):
        return None
    found = tensor.array
    return found if isinstance(found, ShardedArray) else None


class _ByKey(type):
    """A tensor is a DTensor if its kernel key is `Sharded`, whatever its class: a Parameter can be
    one too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return array_of(instance) is not None


class DTensor(Tensor, metaclass=_ByKey):
    """A tensor distributed over a mesh: each rank has a part of it, the whole, or a summand.

    Operators take and return DTensors as if they were whole. `distribute_tensor` makes one from a
    tensor that every rank has, `from_local` makes one from the ranks' parts.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import Shard, distribute_tensor
    >>> def row_sums():
    ...     x = plugrad.arange(12.0).reshape(4, 3)
    ...     d = distribute_tensor(x, init_device_mesh("cpu", (2,)), [Shard(0)])
    ...     return d.to_local().shape, d.sum(1).full_tensor()
    >>> dist.run_ranks(row_sums, 2)[1]
    (plugrad.Size([2, 3]), tensor([ 3., 12., 21., 30.]))
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> DTensor:
        raise TypeError("DTensor() makes no tensors: use DTensor.from_local or distribute_tensor")

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of the tensor.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> from plugrad.distributed.tensor import zeros
        >>> def mesh_of_zeros():
        ...     return zeros(2, device_mesh=init_device_mesh("cpu", (2,))).device_mesh
        >>> dist.run_ranks(mesh_of_zeros, 2)[0]
        DeviceMesh((2,), 'cpu', ranks=[0, 1])
        """
        return _array(self).mesh

    @property
    def placements(self) -> Placements:
        """The placement along each dimension of the mesh.

        >>> import plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> from plugrad.distributed.tensor import Shard, zeros
        >>> def row_sums():
        ...     d = zeros(4, 6, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(1)])
        ...     return d.placements, d.sum(1).placements
        >>> dist.run_ranks(row_sums, 2)[0]
        ((Shard(dim=1),), (Partial(sum),))
        """
        return _array(self).placements

    @property
    def _local_tensor(self) -> Tensor:
        _array(self)
        return conversions.resolved(self).local

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """Make a DTensor from the ranks' parts. Differentiable.

        Args:
            local_tensor: this rank's part.
            device_mesh: by default the mesh of the ``with mesh:`` block.
            placements: by default `Replicate` on all dimensions.
            run_check: compare shapes between ranks, and broadcast replicated tensors from the first
                ranks.
            shape, stride: the whole tensor's; give both. By default all parts have the same shape.
            grad_placements: the placements of the gradient of `local_tensor`. By default the
                tensor's, with `Replicate` in place of `Partial`.

        Raises:
            RuntimeError: `local_tensor` is a DTensor, or `shape` is given without `stride`.
            ValueError: the `Partial` placements mix operations, or parts do not fit.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> from plugrad.distributed.tensor import DTensor, Shard
        >>> def joined():
        ...     part = plugrad.full((1, 2), float(dist.get_rank()))
        ...     d = DTensor.from_local(part, init_device_mesh("cpu", (2,)), [Shard(0)])
        ...     return d.shape, d.full_tensor().tolist()
        >>> dist.run_ranks(joined, 2)[0]
        (plugrad.Size([2, 2]), [[0.0, 0.0], [1.0, 1.0]])
        """
        if array_of(local_tensor) is not None:
            raise RuntimeError(
                "from_local(): the local_tensor argument only accepts plugrad.Tensor but got a "
                "DTensor"
            )
        mesh = current_mesh() if device_mesh is None else device_mesh
        wanted = normalized(placements, mesh, local_tensor.ndim, "from_local")
        if len({one.reduce_op for one in wanted if isinstance(one, Partial)}) > 1:
            raise ValueError(f"from_local(): placements mix operations of Partial: {wanted}")
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the "
                "same time."
            )
        if local_tensor.device.type != mesh.device_type:
            local_tensor = local_tensor.to(mesh.device_type)
        if run_check:
            local_tensor = conversions.checked(local_tensor, mesh, wanted, shape is None)
        grads = (
            None
            if grad_placements is None
            else normalized(grad_placements, mesh, local_tensor.ndim, "from_local")
        )
        found: DTensor = conversions.FromLocal.apply(
            local_tensor, mesh, wanted, shape, stride, grads
        )
        return found

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part. Differentiable.

        Args:
            grad_placements: the placements of incoming gradients; by default the tensor's, with
                `Replicate` in place of `Partial`.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> from plugrad.distributed.tensor import Shard, distribute_tensor
        >>> def part():
        ...     d = distribute_tensor(plugrad.arange(4), init_device_mesh("cpu", (2,)), [Shard(0)])
        ...     return d.to_local().tolist()
        >>> dist.run_ranks(part, 2)
        [[0, 1], [2, 3]]
        """
        array = _array(self)
        if not plugrad.is_grad_enabled():
            return conversions.resolved(self).local
        grads = (
            None
            if grad_placements is None
            else normalized(grad_placements, array.mesh, self.ndim, "to_local")
        )
        found: Tensor = conversions.ToLocal.apply(self, grads)
        return found

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """Change the placements by collectives. Differentiable.

        Args:
            device_mesh: the tensor's own; another one is an error.
            placements: by default `Replicate` on all dimensions.
            async_op: accepted and ignored: the result is complete when this returns.
            forward_dtype: the dtype in which the elements are sent, and the result's dtype.
            backward_dtype: the dtype in which the gradient is sent.

        Raises:
            NotImplementedError: `device_mesh` is another mesh.
            RuntimeError: a placement would become `Partial`.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> from plugrad.distributed.tensor import Shard, distribute_tensor
        >>> def shapes():
        ...     d = distribute_tensor(plugrad.ones(4, 6), init_device_mesh("cpu", (2,)), [Shard(0)])
        ...     return d.to_local().shape, d.redistribute(placements=[Shard(1)]).to_local().shape
        >>> dist.run_ranks(shapes, 2)[0]
        (plugrad.Size([2, 6]), plugrad.Size([4, 3]))
        """
        array = _array(self)
        if device_mesh is not None and device_mesh != array.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        wanted = normalized(placements, array.mesh, self.ndim, "redistribute")
        for before, after in zip(array.placements, wanted, strict=True):
            if isinstance(after, Partial) and before != after:
                raise RuntimeError(
                    "Can not redistribute to Partial, redistributing to Partial is for internal "
                    f"use only! Got {before} -> {after}."
                )
        source: Any = self if forward_dtype is None else self.to(forward_dtype)
        found: DTensor = conversions.Redistribute.apply(source, wanted, backward_dtype)
        return found

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, on each rank. Differentiable.

        Args:
            grad_placements: as in `to_local`, for the whole.

        >>> import plugrad, plugrad.distributed as dist
        >>> from plugrad.distributed.device_mesh import init_device_mesh
        >>> from plugrad.distributed.tensor import Shard, distribute_tensor
        >>> def gradient():
        ...     x = plugrad.tensor([1.0, 2.0], requires_grad=True)
        ...     d = distribute_tensor(x, init_device_mesh("cpu", (2,)), [Shard(0)])
        ...     (d * d).full_tensor().sum().backward()
        ...     return d.grad.full_tensor()
        >>> dist.run_ranks(gradient, 2)[0]
        tensor([2., 4.])
        """
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)


def _array(tensor: Tensor) -> ShardedArray:
    found = array_of(tensor)
    if found is None:
        raise TypeError(f"expected a DTensor, got {type(tensor).__name__} on {tensor.device}")
    return found


class _OfDTensors:
    """An attribute that only tensors with the kernel key `Sharded` have."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: Any = DTensor.__dict__[name]
        self.__doc__ = self.found.__doc__

    def __get__(self, tensor: Any, owner: type) -> Any:
        if tensor is None:
            return self
        if not isinstance(getattr(tensor, "_backend_array", None), ShardedArray):
            raise AttributeError(f"'{owner.__name__}' object has no attribute '{self.name}'")
        return self.found.__get__(tensor, owner)


for _name in (
    *("device_mesh", "placements", "_local_tensor"),
    *("to_local", "redistribute", "full_tensor"),
):
    setattr(Tensor, _name, _OfDTensors(_name))
