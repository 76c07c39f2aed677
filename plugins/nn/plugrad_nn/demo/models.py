"""The demo's models: a small convolutional net and a perceptron, for 8x8 images in ten classes."""

from __future__ import annotations

from plugrad_nn import nn


def cnn() -> nn.Module:
    """Two convolutions, one pooling, one linear layer: 9,930 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 10),
    )


def mlp() -> nn.Module:
    """One hidden layer of 128."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 128),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(128, 10),
    )


MODELS = {"cnn": cnn, "mlp": mlp}
