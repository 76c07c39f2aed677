"""reformer-pytorch: attention by hashes, in layers that are run backwards instead of kept."""

import torch
from reformer_pytorch import ReformerLM
from training import train


def run():
    model = ReformerLM(
        num_tokens=32,
        dim=16,
        depth=2,
        max_seq_len=32,
        heads=2,
        bucket_size=8,
        n_hashes=2,
        causal=True,
        ff_chunks=2,
    )
    ids = torch.randint(0, 32, (1, 32))
    return train(model, lambda: model(ids).logsumexp(-1).mean())
