"""snntorch: spiking neurons with surrogate gradients."""

import snntorch
import torch
from training import train


def run():
    layer, neuron = (
        torch.nn.Linear(5, 4),
        snntorch.Leaky(beta=0.9, spike_grad=snntorch.surrogate.fast_sigmoid()),
    )
    x = torch.rand(6, 3, 5) * 2

    def loss():
        state, total = neuron.init_leaky(), 0.0
        for step in x:
            spikes, state = neuron(layer(step), state)
            total = total + spikes.sum() + state.square().mean()
        return total

    return train(layer, loss)
