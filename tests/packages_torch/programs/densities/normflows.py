"""normflows: Real NVP by affine couplings."""

import normflows
import torch
from training import train


def run():
    flows = []
    for _ in range(3):
        flows += [
            normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 8, 2], init_zeros=False)),
            normflows.flows.Permute(2, mode="swap"),
        ]
    model = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2), flows)
    x = torch.randn(16, 2)
    return train(model, lambda: model.forward_kld(x), torch.optim.Adam(model.parameters(), lr=1e-2))
