"""ema-pytorch: a running mean of a model."""

import torch
from ema_pytorch import EMA
from training import small_net, train


def run():
    model = small_net()
    ema = EMA(model, beta=0.9, update_after_step=1, update_every=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    x = torch.randn(8, 4)
    found = []
    for _ in range(4):
        found += train(model, lambda: model(x).square().mean(), optimizer, steps=1)
        ema.update()
    return [found, ema(x), list(ema.ema_model.parameters()), ema.state_dict()]
