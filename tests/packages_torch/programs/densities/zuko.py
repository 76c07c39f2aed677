"""zuko: conditional flows: autoregressive, splines, sums of squares, neural, continuous, mixed."""

import torch
import zuko
from training import train


def run():
    torch.set_default_dtype(torch.float64)
    x, context = torch.randn(16, 3), torch.randn(16, 2)
    flows = [
        zuko.flows.MAF(3, 2, transforms=2, hidden_features=(16,)),
        zuko.flows.NSF(3, 2, transforms=2, bins=4, hidden_features=(16,)),
        zuko.flows.NICE(3, 2, transforms=2, hidden_features=(16,)),
        zuko.flows.SOSPF(3, 2, transforms=1, degree=2, polynomials=2, hidden_features=(16,)),
        zuko.flows.BPF(3, 2, transforms=1, degree=4, hidden_features=(16,)),
        zuko.flows.NAF(3, 2, transforms=1, signal=4, hidden_features=(16,)),
        zuko.flows.UNAF(3, 2, transforms=1, signal=4, hidden_features=(16,)),
        zuko.flows.CNF(3, 2, hidden_features=(16,)),
        zuko.flows.GF(3, 2, transforms=2, components=3, hidden_features=(16,)),
        zuko.mixtures.GMM(3, 2, components=3, hidden_features=(16,)),
    ]
    found = []
    for flow in flows:
        optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
        found += train(flow, lambda f=flow: -f(context).log_prob(x).mean(), optimizer)
    for flow in flows[:5]:
        sample, log_prob = flow(context).rsample_and_log_prob((2,))
        found += [sample, log_prob]
    return found
