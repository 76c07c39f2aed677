"""linformer: attention over a projected sequence."""

import torch
from linformer import LinformerLM
from training import train


def run():
    model = LinformerLM(num_tokens=32, dim=16, seq_len=24, depth=2, heads=2, k=8, one_kv_head=True)
    ids = torch.randint(0, 32, (2, 24))
    return train(model, lambda: model(ids).logsumexp(-1).mean())
