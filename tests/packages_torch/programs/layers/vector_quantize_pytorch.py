"""vector-quantize-pytorch: codebooks trained by running means."""

import torch
from training import train
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize


def run():
    found = []
    for make in (
        lambda: VectorQuantize(dim=8, codebook_size=16, decay=0.8),
        lambda: VectorQuantize(dim=8, codebook_size=16, learnable_codebook=True, ema_update=False),
        lambda: ResidualVQ(dim=8, num_quantizers=2, codebook_size=16),
    ):
        encoder = torch.nn.Linear(6, 8)
        quantize, x = make(), torch.randn(2, 10, 6)

        def loss(encoder=encoder, quantize=quantize, x=x):
            y, _, commit = quantize(encoder(x))
            return y.square().mean() + commit.sum()

        found += train(torch.nn.ModuleList([encoder, quantize]), loss)
    y, indices = FSQ(levels=[8, 5, 5], dim=8)(torch.randn(1, 9, 8))
    z, _, entropy = LFQ(codebook_size=16, dim=8)(torch.randn(1, 9, 8))
    return [found, y, indices, z, entropy]
