"""local-attention: attention in windows."""

import torch
from local_attention import LocalAttention
from local_attention.transformer import LocalTransformer
from training import train


def run():
    q, k, v = (torch.randn(2, 8, 64, 16, requires_grad=True) for _ in range(3))
    attend = LocalAttention(dim=16, window_size=16, causal=True, look_backward=1, look_forward=0)
    y = attend(q, k, v, mask=torch.ones(2, 64).bool())
    y.square().sum().backward()
    model = LocalTransformer(
        num_tokens=32,
        dim=16,
        depth=2,
        max_seq_len=64,
        local_attn_window_size=16,
        heads=2,
        dim_head=8,
    )
    ids = torch.randint(0, 32, (2, 48))
    return [y, q.grad, k.grad, v.grad, train(model, lambda: model(ids, return_loss=True))]
