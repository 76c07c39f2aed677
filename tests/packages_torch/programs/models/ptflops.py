"""ptflops: multiply-adds and parameters of convolutional, recurrent and attending networks."""

import torch
from ptflops import get_model_complexity_info
from torch import nn
from training import train


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )


def counts(model, shape, backend):
    return get_model_complexity_info(
        model, shape, as_strings=False, print_per_layer_stat=False, backend=backend
    )


def run():
    model = convolutions()
    found = [counts(model, (3, 16, 16), "pytorch")]
    # Without the last layer, for which operators have other names: `linear`, and not `addmm`.
    found.append(counts(model[:-1], (3, 16, 16), "aten"))
    found.append(counts(nn.LSTM(4, 6, batch_first=True), (7, 4), "pytorch"))
    found.append(counts(nn.TransformerEncoderLayer(8, 2, 16), (5, 8), "pytorch"))
    x = torch.randn(2, 3, 16, 16)
    return [found, train(model, lambda: model(x).square().mean())]
