"""pytorch-warmup: learning rates that grow at first, beside a scheduler."""

import pytorch_warmup
import torch
from training import small_net, train


def run():
    found = []
    for make in (
        lambda o: pytorch_warmup.UntunedLinearWarmup(o),
        lambda o: pytorch_warmup.ExponentialWarmup(o, 4),
        lambda o: pytorch_warmup.RAdamWarmup(o),
    ):
        model, x = small_net(), torch.randn(8, 4)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
        warmup = make(optimizer)
        for _ in range(6):
            found += train(
                model, lambda model=model, x=x: model(x).square().mean(), optimizer, steps=1
            )
            with warmup.dampening():
                schedule.step()
            found.append(torch.tensor(optimizer.param_groups[0]["lr"]))
    return found
