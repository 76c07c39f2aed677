"""performer-pytorch: linear attention by random features."""

import torch
from performer_pytorch import Performer, PerformerLM
from training import train


def run():
    model = PerformerLM(
        num_tokens=32,
        max_seq_len=32,
        dim=16,
        depth=2,
        heads=2,
        dim_head=8,
        causal=True,
        nb_features=12,
    )
    ids = torch.randint(0, 32, (2, 32))

    def loss():
        return torch.nn.functional.cross_entropy(model(ids).transpose(1, 2), ids)

    other = Performer(dim=16, depth=1, heads=2, dim_head=8, nb_features=12, ff_glu=True)
    x = torch.randn(2, 16, 16)
    return [train(model, loss), train(other, lambda: other(x).square().mean())]
