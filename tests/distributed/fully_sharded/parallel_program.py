"""A small model with tensor parallel layers that is fully sharded too, on a mesh of two dimensions.
Run as a program under mpiexec, each rank reports losses and sums. The oracle is one process."""

from __future__ import annotations

from typing import Any

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.device_mesh import DeviceMesh, init_device_mesh
from plugrad.distributed.fsdp import fully_shard
from plugrad.distributed.tensor import Replicate, Shard
from plugrad.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInputOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from tests.distributed.training import filled, loss_of, numbers, values

__all__ = ["Model", "alone", "shard", "train"]

STEPS = 3


class Block(nn.Module):
    """A layer with a norm before; five features inside are cut unevenly."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.up = nn.Linear(4, 5)
        self.down = nn.Linear(5, 4)

    def forward(self, x: Any) -> Any:
        return x + self.down(plugrad.tanh(self.up(self.norm(x))))


class Model(nn.Module):
    """A block, and a layer that is not parallel."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(x))


def shard(model: Any, mesh: DeviceMesh, data: DeviceMesh, **options: Any) -> None:
    """Cut rows and features over ``tp``, then all parameters over the dimensions of `data`."""
    parallelize_module(
        model,
        mesh["tp"],
        {
            "block": PrepareModuleInputOutput(
                input_layouts=Replicate(),
                desired_input_layouts=Shard(1),
                output_layouts=Shard(1),
                desired_output_layouts=Replicate(),
            ),
            "block.norm": SequenceParallel(),
            "block.up": ColwiseParallel(use_local_output=False),
            "block.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        },
    )
    for layer in (model.block.up, model.block.down):
        fully_shard(layer, mesh=data, **options)
    fully_shard(model, mesh=data, **options)


def batch(step: int) -> tuple[Any, Any]:
    """Eight sequences of four rows, and targets."""
    return values(100 + step, 8, 4, 4), values(200 + step, 8, 4, 3)


def train(model: Any, make: Any, share: int, shares: int) -> list[Any]:
    """Losses of this share of each batch; gradients are clipped."""
    optimizer = make(model.parameters())
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = (one.chunk(shares)[share] for one in batch(step))
        loss = loss_of(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses


def alone(make: Any) -> list[Any]:
    """The parameters after the training of one process."""
    model = filled(Model())
    train(model, make, 0, 1)
    return numbers(model.parameters())


if __name__ == "__main__":
    from tests.distributed.training import adam
    from tests.distributed.under_mpi import report

    dist.init_process_group()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model: Any = filled(Model())
    shard(model, mesh, mesh["dp"])
    train(model, adam, mesh["dp"].get_local_rank(), 2)
    report([p.detach().full_tensor().tolist() for p in model.parameters()])
