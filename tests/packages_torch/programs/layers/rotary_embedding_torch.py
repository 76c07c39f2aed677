"""rotary-embedding-torch: positions as rotations."""

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb


def run():
    rotary = RotaryEmbedding(dim=8, learned_freq=True)
    q, k = (torch.randn(1, 2, 16, 16, requires_grad=True) for _ in range(2))
    rotated = [rotary.rotate_queries_or_keys(one) for one in (q, k)]
    (rotated[0] @ rotated[1].transpose(-1, -2)).tanh().sum().backward()
    axial = RotaryEmbedding(dim=8, freqs_for="pixel", max_freq=10).get_axial_freqs(4, 4)
    extended = RotaryEmbedding(dim=8, use_xpos=True).rotate_queries_and_keys(q.detach(), k.detach())
    return [
        rotated,
        q.grad,
        k.grad,
        next(iter(rotary.parameters())).grad,
        axial,
        apply_rotary_emb(axial, torch.randn(1, 4, 4, 16)),
        extended,
    ]
