"""torch-ema: a running mean of parameters."""

import torch
from torch_ema import ExponentialMovingAverage
from training import small_net, train


def run():
    model, x = small_net(), torch.randn(8, 4)
    ema = ExponentialMovingAverage(model.parameters(), decay=0.9)
    found = []
    for _ in range(3):
        found += train(model, lambda: model(x).square().mean(), steps=1)
        ema.update()
    with ema.average_parameters():
        found.append(model(x))
    return [found, model(x), ema.state_dict()["shadow_params"]]
