"""What a cluster must be able to do: `program.py FOLDER [RANK]`, under any launcher.

The ranks communicate, train a model as one process would, and write and read a checkpoint in a
folder that all machines see. If a rank is given, it is then killed, and the others must name it.
The program needs only installed packages.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

import plugrad
from plugrad import distributed as dist
from plugrad import nn, optim
from plugrad.distributed import checkpoint
from plugrad.nn.parallel import DistributedDataParallel

STEPS = 5


def check_collectives() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    ranks = [float(one) for one in range(size)]
    total = plugrad.full((3,), float(rank))
    dist.all_reduce(total)
    assert total.tolist() == [sum(ranks)] * 3
    parts = plugrad.empty(size)
    dist.all_gather_into_tensor(parts, plugrad.tensor([float(rank)]))
    assert parts.tolist() == ranks
    long = plugrad.ones(1_000_000)
    dist.all_reduce(long)
    assert float(long.min()) == float(long.max()) == size


def trained(model: nn.Module, parts: list[plugrad.Tensor]) -> None:
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        (model(parts[step]) ** 2).mean().backward()
        optimizer.step()


def check_training(folder: str) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    plugrad.manual_seed(7)
    model, alone = nn.Linear(4, 2), nn.Linear(4, 2)
    alone.load_state_dict(model.state_dict())
    batches = [plugrad.randn(2 * size, 4) for _ in range(STEPS)]
    trained(DistributedDataParallel(model), [batch[2 * rank : 2 * rank + 2] for batch in batches])
    trained(alone, batches)
    assert plugrad.allclose(model.weight, alone.weight, atol=1e-6)
    checkpoint.save({"model": model}, checkpoint_id=folder)
    read = nn.Linear(4, 2)
    checkpoint.load({"model": read}, checkpoint_id=folder)
    assert read.weight.tolist() == model.weight.tolist()


def lose(victim: int) -> None:
    """Communicate until the victim has been killed."""
    dist.barrier()
    if dist.get_rank() == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(plugrad.ones(4))
    except dist.DistError as error:
        print(f"rank {dist.get_rank()}: {error}", flush=True)
        raise


def main() -> None:
    dist.init_process_group("mpi", timeout=60)
    check_collectives()
    check_training(sys.argv[1])
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} on {socket.gethostname()}: well")
    sys.stdout.flush()
    if len(sys.argv) > 2:
        lose(int(sys.argv[2]))


if __name__ == "__main__":
    main()
