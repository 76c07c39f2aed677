"""opacus: training with differential privacy: gradients of each sample, clipped, with noise."""

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.validators import ModuleValidator
from torch import nn


def run():
    # The gradient of a bias before a normalization is zero up to rounding.
    torch.set_default_dtype(torch.float64)
    data = torch.utils.data.TensorDataset(torch.randn(24, 1, 8, 8), torch.randint(0, 3, (24,)))
    found = []
    for clipping in ("flat", "per_layer"):
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(36, 3),
        )
        net = ModuleValidator.fix(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        engine = PrivacyEngine(accountant="rdp")
        bound = 1.0 if clipping == "flat" else [1.0] * len(list(net.parameters()))
        net, optimizer, loader = engine.make_private(
            module=net,
            optimizer=optimizer,
            data_loader=torch.utils.data.DataLoader(data, batch_size=8),
            noise_multiplier=1.1,
            max_grad_norm=bound,
            clipping=clipping,
        )
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            found += [loss, [p.grad_sample.clone() for p in net.parameters()]]
            optimizer.step()
        found += [list(net.parameters()), engine.get_epsilon(1e-5)]
    layers = GradSampleModule(nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.Linear(4, 2)))
    layers(torch.randint(0, 5, (3, 6))).square().sum().backward()
    return [found, [p.grad_sample for p in layers.parameters()]]
