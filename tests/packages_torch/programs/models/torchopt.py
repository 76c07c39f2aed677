"""torchopt: optimizers as functions, steps that are differentiated through, implicit gradients."""

import torch
import torchopt
from torch import nn
from training import small_net


def run():
    torch.set_default_dtype(torch.float64)
    x, y = torch.randn(16, 4), torch.randn(16, 3)
    found = []
    for make in (torchopt.adam, torchopt.sgd, torchopt.adamw, torchopt.rmsprop, torchopt.adagrad):
        net = small_net()
        update = make(lr=0.05)
        params = tuple(net.parameters())
        state = update.init(params)
        for _ in range(3):
            loss = (net(x) - y).square().mean()
            grads = torch.autograd.grad(loss, params)
            updates, state = update.update(grads, state, params=params, inplace=False)
            torchopt.apply_updates(params, updates, inplace=True)
        found += [loss, list(params)]
    for kind, options in ((torchopt.MetaSGD, {"momentum": 0.9}), (torchopt.MetaAdam, {})):
        net, rate = small_net(), nn.Parameter(torch.tensor(0.5))
        inner = kind(net, lr=0.1, **options)
        before = torchopt.extract_state_dict(net, by="copy")
        state = torchopt.extract_state_dict(inner, by="copy")
        outer = torchopt.Adam([rate], lr=0.1)
        for _ in range(2):
            for _ in range(2):
                inner.step(rate * (net(x) - y).square().mean())
            loss = (net(x) - y).square().mean()
            outer.zero_grad()
            loss.backward()
            found += [loss, rate.grad.clone()]
            outer.step()
            torchopt.recover_state_dict(net, before)
            torchopt.recover_state_dict(inner, state)
        found.append(rate)
    clipped = torchopt.chain(torchopt.clip_grad_norm(0.5), torchopt.sgd(lr=0.1))
    weight = (torch.randn(5),)
    updates, _ = clipped.update((torch.randn(5),), clipped.init(weight), inplace=False)
    return [found, updates]
