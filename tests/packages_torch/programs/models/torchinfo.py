"""torchinfo: the table of a model's layers."""

import torch
from torchinfo import summary
from training import train


def run():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, bias=False),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(144, 2),
    )
    found = summary(model, (2, 3, 8, 8), verbose=0, depth=3)
    recurrent = summary(torch.nn.LSTM(4, 5, 2), (6, 2, 4), verbose=0)
    text = [float(ord(sign)) for sign in str(found) + str(recurrent)]
    x = torch.randn(2, 3, 8, 8)
    return [
        text,
        found.total_params,
        found.total_mult_adds,
        train(model, lambda: model(x).square().sum()),
    ]
