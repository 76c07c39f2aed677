"""spikingjelly: spiking neurons of several kinds, in one step and in many, with surrogates."""

import torch
from spikingjelly.activation_based import encoding, functional, layer, neuron, surrogate
from torch import nn
from training import train


def run():
    found = []
    for make in (
        neuron.IFNode,
        neuron.LIFNode,
        neuron.ParametricLIFNode,
        neuron.QIFNode,
        neuron.EIFNode,
    ):
        node = make(surrogate_function=surrogate.ATan())
        x = torch.randn(3, 4, requires_grad=True)
        out = [node(x * step) for step in (1.0, 2.0, 3.0)]
        sum(each.sum() for each in out).backward()
        found += [out, x.grad, node.v.detach()]
    net = nn.Sequential(
        layer.Conv2d(1, 4, 3, padding=1, bias=False),
        layer.BatchNorm2d(4),
        neuron.LIFNode(surrogate_function=surrogate.Sigmoid(), detach_reset=True),
        layer.MaxPool2d(2),
        layer.Flatten(),
        layer.Linear(64, 3),
        neuron.IFNode(surrogate_function=surrogate.ATan()),
    )
    functional.set_step_mode(net, "m")
    images, labels = torch.rand(2, 1, 8, 8), torch.tensor([0, 2])
    spikes = encoding.PoissonEncoder()
    frames = torch.stack([spikes(images) for _ in range(4)])

    def loss():
        functional.reset_net(net)
        return nn.functional.cross_entropy(net(frames).mean(0), labels)

    return [found, frames, train(net, loss)]
