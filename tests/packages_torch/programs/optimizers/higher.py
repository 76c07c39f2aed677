"""higher: gradients through the steps of an optimizer."""

import higher
import torch
from training import small_net


def run():
    model, x = small_net(), torch.randn(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with higher.innerloop_ctx(model, optimizer) as (inner, steps):
        for _ in range(3):
            steps.step(inner(x).square().mean())
        loss = inner(x).tanh().mean()
        gradients = torch.autograd.grad(loss, inner.parameters(time=0))
    return [loss, gradients]
