"""Styles: how to parallelize one module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import plugrad
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.tensor.dtensor import DTensor
from plugrad_distributed.tensor.functions import (
    distribute_module,
    distribute_tensor,
    redistributed,
)
from plugrad_distributed.tensor.placement import Placement, Replicate, Shard

__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "SequenceParallel"]


class ParallelStyle(ABC):
    """How to parallelize a module. A subclass implements `_apply`.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor import distribute_module
    >>> from plugrad.distributed.tensor.parallel import ParallelStyle, parallelize_module
    >>> class Replicated(ParallelStyle):
    ...     def _apply(self, module, device_mesh):
    ...         return distribute_module(module, device_mesh)
    >>> def placements():
    ...     layer = plugrad.nn.Linear(2, 2)
    ...     parallelize_module(layer, init_device_mesh("cpu", (2,)), Replicated())
    ...     return layer.weight.placements
    >>> dist.run_ranks(placements, 2)[0]
    (Replicate(),)
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        """Make a module parallel, in place, and return it."""


def as_dtensor(value: Any, mesh: DeviceMesh, layout: Placement) -> Any:
    """A tensor as a DTensor with the placement `layout`; a DTensor stays unchanged."""
    if isinstance(value, DTensor):
        return value
    return DTensor.from_local(value, mesh, (layout,))


class _Partitioned(ParallelStyle):
    """The base of styles that shard the parameters of a Linear or Embedding.

    Attributes:
        input_layouts: the placement of a plain input tensor.
        output_layouts: the placements of the result.
        use_local_output: whether the result is this rank's part, not a DTensor.
    """

    # By the name of the parameter.
    linear: ClassVar[dict[str, Placement]]
    embedding: ClassVar[dict[str, Placement]]

    def __init__(
        self, input_layouts: Placement, output_layouts: Placement, use_local_output: bool
    ) -> None:
        self.input_layouts = (input_layouts,)
        self.output_layouts = (output_layouts,)
        self.use_local_output = use_local_output

    def _desired(self, module: Any) -> Placement:
        """The required placement of the input."""
        return Replicate()

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        if isinstance(module, plugrad.nn.Linear):
            table = self.linear
        elif isinstance(module, plugrad.nn.Embedding):
            table = self.embedding
        else:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding! Got "
                f"{type(module).__name__}"
            )
        desired = self._desired(module)

        def partition(name: str, part: Any, mesh: DeviceMesh) -> None:
            for key, parameter in list(part._parameters.items()):
                if parameter is not None:
                    made = distribute_tensor(
                        parameter.detach(), mesh, [table[key]], src_data_rank=self.src_data_rank
                    )
                    part.register_parameter(
                        key, plugrad.nn.Parameter(made, requires_grad=parameter.requires_grad)
                    )

        def prepare(module: Any, inputs: Any, mesh: DeviceMesh) -> Any:
            given = as_dtensor(inputs[0], mesh, self.input_layouts[0])
            return (redistributed(given, (desired,)), *inputs[1:])

        def finish(module: Any, outputs: Any, mesh: DeviceMesh) -> Any:
            outputs = redistributed(outputs, self.output_layouts)
            return outputs.to_local() if self.use_local_output else outputs

        return distribute_module(module, device_mesh, partition, prepare, finish)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts="
            f"{self.output_layouts}, use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Partitioned):
    """Shards the output features of a Linear, or the columns of an Embedding, over the ranks.

    Args:
        input_layouts: the placement of a plain input tensor; by default `Replicate`.
        output_layouts: the placement of the result; by default sharded along its last dimension.
        use_local_output: whether the result is this rank's part, not a DTensor.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    >>> def shapes():
    ...     layer = plugrad.nn.Linear(4, 8)
    ...     parallelize_module(layer, init_device_mesh("cpu", (2,)), ColwiseParallel())
    ...     return layer.weight.to_local().shape, layer(plugrad.ones(3, 4)).shape
    >>> dist.run_ranks(shapes, 2)[0]
    (plugrad.Size([4, 4]), plugrad.Size([3, 4]))
    """

    linear: ClassVar[dict[str, Placement]] = {"weight": Shard(0), "bias": Shard(0)}
    embedding: ClassVar[dict[str, Placement]] = {"weight": Shard(1)}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output
        )


class RowwiseParallel(_Partitioned):
    """Shards the input features of a Linear, or the rows of an Embedding, over the ranks.

    Args:
        input_layouts: the placement of a plain input tensor; by default sharded along its last
            dimension.
        output_layouts: the placement of the result; by default `Replicate`.
        use_local_output: whether the result is this rank's part, not a DTensor.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor.parallel import RowwiseParallel, parallelize_module
    >>> def shapes():
    ...     layer = plugrad.nn.Linear(8, 4)
    ...     parallelize_module(layer, init_device_mesh("cpu", (2,)), RowwiseParallel())
    ...     # Each rank has half of the 8 input features.
    ...     return layer.weight.to_local().shape, layer(plugrad.ones(3, 4)).shape
    >>> dist.run_ranks(shapes, 2)[0]
    (plugrad.Size([4, 4]), plugrad.Size([3, 4]))
    """

    linear: ClassVar[dict[str, Placement]] = {"weight": Shard(1), "bias": Replicate()}
    embedding: ClassVar[dict[str, Placement]] = {"weight": Shard(0)}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output
        )

    def _desired(self, module: Any) -> Placement:
        return Shard(-1) if isinstance(module, plugrad.nn.Linear) else Replicate()


class SequenceParallel(ParallelStyle):
    """A LayerNorm, RMSNorm or Dropout on inputs sharded along the sequence, with replicated
    parameters.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: whether the result is this rank's part, not a DTensor.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.device_mesh import init_device_mesh
    >>> from plugrad.distributed.tensor.parallel import SequenceParallel, parallelize_module
    >>> def shapes():
    ...     norm = plugrad.nn.LayerNorm(8)
    ...     parallelize_module(norm, init_device_mesh("cpu", (2,)), SequenceParallel())
    ...     # Each rank has 5 of the 10 positions.
    ...     out = norm(plugrad.ones(3, 5, 8))
    ...     return out.shape, out.placements
    >>> dist.run_ranks(shapes, 2)[0]
    (plugrad.Size([3, 10, 8]), (Shard(dim=1),))
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def prepare(module: Any, inputs: Any, mesh: DeviceMesh) -> Any:
            if not isinstance(inputs[0], plugrad.Tensor):
                raise ValueError(
                    f"expecting input of {module} to be a plugrad.Tensor or DTensor, but got "
                    f"{type(inputs[0]).__name__}"
                )
            given = as_dtensor(inputs[0], mesh, self.sequence_sharding[0])
            return (redistributed(given, self.sequence_sharding), *inputs[1:])

        def finish(module: Any, outputs: Any, mesh: DeviceMesh) -> Any:
            return outputs.to_local() if self.use_local_output else outputs

        return distribute_module(module, device_mesh, None, prepare, finish)

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, "
            f"use_local_output={self.use_local_output})"
        )
