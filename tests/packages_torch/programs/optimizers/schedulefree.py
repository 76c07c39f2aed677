"""schedulefree: optimizers that need no schedule."""

import schedulefree
import torch
from training import small_net, train


def run():
    found = []
    for name in ("SGDScheduleFree", "AdamWScheduleFree", "RAdamScheduleFree"):
        model, x = small_net(), torch.randn(8, 4)
        optimizer = getattr(schedulefree, name)(model.parameters(), lr=0.05)
        optimizer.train()
        found += train(model, lambda model=model, x=x: model(x).square().mean(), optimizer, steps=6)
        optimizer.eval()
        found += [model(x), list(model.parameters())]
    return found
