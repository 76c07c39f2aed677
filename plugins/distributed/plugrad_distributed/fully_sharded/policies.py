"""Settings of `fully_shard` for dtypes, host memory and communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.collectives import (
    all_gather_into_tensor,
    reduce_scatter_tensor,
)
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.groups.work import Work
from plugrad_distributed.reduce_op import ReduceOp

__all__ = [
    "FULL_PRECISION",
    "NO_OFFLOAD",
    "AllGather",
    "CPUOffloadPolicy",
    "DefaultAllGather",
    "DefaultReduceScatter",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "ReduceScatter",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module's computation. The optimizer works on parameters in their original
    dtype.

    Attributes:
        param_dtype: the dtype of gathered parameters and thus of the computation; by default their
            own.
        reduce_dtype: the dtype in which gradients are reduced; by default `param_dtype`.
        output_dtype: the dtype to which floating point outputs of forward are cast; by default they
            are not cast.
        cast_forward_inputs: whether to cast floating point inputs of forward to `param_dtype`.

    >>> import plugrad
    >>> from plugrad.distributed.fsdp import MixedPrecisionPolicy
    >>> MixedPrecisionPolicy(param_dtype=plugrad.bfloat16).cast_forward_inputs
    True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on the device of the mesh.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.fsdp import OffloadPolicy, fully_shard
    >>> def device():
    ...     layer = fully_shard(plugrad.nn.Linear(3, 4), offload_policy=OffloadPolicy())
    ...     return layer.weight.to_local().device
    >>> dist.run_ranks(device, 2)[0]
    device(type='cpu')
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Sharded parameters stay in host memory, as they always do on a mesh of CPUs.

    Attributes:
        pin_memory: accepted and ignored.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.fsdp import CPUOffloadPolicy, fully_shard
    >>> def device():
    ...     layer = fully_shard(plugrad.nn.Linear(3, 4), offload_policy=CPUOffloadPolicy())
    ...     return layer.weight.to_local().device
    >>> dist.run_ranks(device, 2)[0]
    device(type='cpu')
    """

    pin_memory: bool = True


FULL_PRECISION = MixedPrecisionPolicy()
NO_OFFLOAD = OffloadPolicy()


class AllGather(Protocol):
    """How the parameters of a group are gathered: see `FSDPModule.set_custom_all_gather`."""

    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Tensor:
        """Allocate memory for sending or receiving."""
        ...

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: ProcessGroup,
        async_op: bool = False,
    ) -> Work | None:
        """Gather; with `async_op` return work to wait for."""
        ...


class ReduceScatter(Protocol):
    """How gradients are reduced: see `FSDPModule.set_custom_reduce_scatter`."""

    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Tensor:
        """Allocate memory for sending or receiving."""
        ...

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: ProcessGroup,
        op: ReduceOp,
        async_op: bool = False,
    ) -> Work | None:
        """Reduce and scatter; with `async_op` return work to wait for."""
        ...


class _FromBackend:
    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Tensor:
        made: Tensor = plugrad.empty(tuple(size), dtype=dtype, device=device)
        return made


class DefaultAllGather(_FromBackend):
    """`all_gather_into_tensor`."""

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: ProcessGroup,
        async_op: bool = False,
    ) -> Work | None:
        return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


class DefaultReduceScatter(_FromBackend):
    """`reduce_scatter_tensor`."""

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: ProcessGroup,
        op: ReduceOp,
        async_op: bool = False,
    ) -> Work | None:
        return reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op)
