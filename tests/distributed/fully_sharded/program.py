"""A small transformer that processes under mpiexec train: run as a program, each rank reports the
losses and sums of the parameters. The oracle is the same training on one process."""

from __future__ import annotations

from typing import Any

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.fsdp import fully_shard

STEPS = 3


class Model(nn.Module):
    """Tokens in, scores of the next ones out; the embedding is the last layer's weight, too."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def train(ranks: int, rank: int) -> Any:
    """Losses of whole batches, and sums of the parameters afterwards."""
    plugrad.manual_seed(3)
    model = Model().double()
    if ranks > 1:
        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
    optimizer = plugrad.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for step in range(STEPS):
        tokens = (plugrad.arange(4 * 6).reshape(4, 6) * (step + 3)) % 11
        mine = tokens.chunk(ranks)[rank]
        optimizer.zero_grad()
        scores = model(mine[:, :-1])
        loss = nn.functional.cross_entropy(scores.reshape(-1, 11), mine[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total = loss.detach()
        if ranks > 1:
            dist.all_reduce(total, dist.ReduceOp.AVG)
        losses.append(total.item())
    sums = [p.detach().full_tensor() if ranks > 1 else p.detach() for p in model.parameters()]
    return losses, [[p.sum().item(), p.square().sum().item()] for p in sums]


if __name__ == "__main__":
    from tests.distributed.under_mpi import report

    dist.init_process_group()
    report(train(dist.get_world_size(), dist.get_rank()))
