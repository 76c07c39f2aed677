"""Data parallel training under mpiexec: what each rank has after a few steps, by name."""

from __future__ import annotations

from typing import Any

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.algorithms.ddp_comm_hooks import (
    ddp_zero_hook,
    default_hooks,
    powerSGD_hook,
)
from plugrad.distributed.algorithms.join import Join
from plugrad.distributed.optim import ZeroRedundancyOptimizer
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import adam, filled, loss_of, mlp, part, values

SMALL = 300 / (1 << 20)


def zero(parameters: Any) -> Any:
    return ZeroRedundancyOptimizer(
        parameters, plugrad.optim.Adam, parameters_as_bucket_view=True, lr=0.05
    )


def trained(make: Any = adam, hook: Any = None, state: Any = None, **options: Any) -> list[Any]:
    """Parameters after four steps on shares of whole batches."""
    net = DistributedDataParallel(mlp(), bucket_cap_mb=SMALL, **options)
    if hook is not None:
        net.register_comm_hook(state, hook)
    optimizer = make(net.parameters())
    for step in range(4):
        optimizer.zero_grad()
        x, y = part(values(100 + step, 12, 4)), part(values(200 + step, 12, 3))
        loss_of(net(x), y).backward()
        optimizer.step()
    return [parameter.tolist() for parameter in net.parameters()]


def overlapped(wrap: Any) -> list[Any]:
    """Parameters after steps during backward, of which the first two iterations have none."""
    net = DistributedDataParallel(mlp(), bucket_cap_mb=SMALL)
    optimizer = ZeroRedundancyOptimizer(
        net.parameters(), plugrad.optim.Adam, overlap_with_ddp=True, lr=0.05
    )
    hook = wrap(default_hooks.allreduce_hook, net, optimizer, shard_buckets=True)
    net.register_comm_hook(None, hook)
    for step in range(5):
        optimizer.zero_grad()
        loss_of(net(part(values(step, 12, 4))), part(values(50 + step, 12, 3))).backward()
    return [parameter.tolist() for parameter in net.parameters()]


def joined() -> list[Any]:
    """Parameters after training with as many steps as a rank's number, and one."""
    net = DistributedDataParallel(mlp(), bucket_cap_mb=SMALL)
    optimizer = zero(net.parameters())
    with Join([net, optimizer]):
        for step in range(1 + dist.get_rank()):
            optimizer.zero_grad()
            loss_of(net(values(step, 2, 4)), values(50 + step, 2, 3)).backward()
            optimizer.step()
    return [parameter.tolist() for parameter in net.parameters()]


def normalized() -> list[Any]:
    """Gradients of a model with batch normalisation over all ranks."""
    model = filled(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)))
    net = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model))
    loss_of(net(part(values(1, 12, 4))), part(values(2, 12, 3))).backward()
    return [parameter.grad.tolist() for parameter in net.parameters()]


def results() -> dict[str, Any]:
    power = powerSGD_hook.PowerSGDState(None, 1, 2, 0.1)
    return {
        "buckets": trained(),
        "views": trained(gradient_as_bucket_view=True),
        "unused": trained(find_unused_parameters=True),
        "static": trained(static_graph=True),
        "divided": trained(zero),
        "bfloat16": trained(hook=default_hooks.bf16_compress_hook),
        "power": trained(hook=powerSGD_hook.powerSGD_hook, state=power),
        "overlapped": overlapped(ddp_zero_hook.hook_with_zero_step),
        "interleaved": overlapped(ddp_zero_hook.hook_with_zero_step_interleaved),
        "joined": joined(),
        "normalized": normalized(),
    }


if __name__ == "__main__":
    from tests.distributed.under_mpi import report

    dist.init_process_group("mpi", timeout=20)
    report(results())
    dist.destroy_process_group()
