"""Two interleaved spirals, separated by a small perceptron: the usual training loop."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import plugrad
from plugrad import nn, optim
from plugrad.nn import functional as F
from plugrad.utils.data import DataLoader, TensorDataset, random_split


def spirals(points: int) -> TensorDataset:
    """Points (2N, 2) on two arms, half a turn apart, and the arm (2N) of each point."""
    radius = plugrad.linspace(0.1, 1.0, points)
    arms = []
    for arm in range(2):
        angle = radius * 3 * math.pi + arm * math.pi
        arms.append(plugrad.stack([radius * angle.cos(), radius * angle.sin()], dim=1))
    positions = plugrad.cat(arms) + 0.02 * plugrad.randn(2 * points, 2)
    return TensorDataset(positions, plugrad.arange(2 * points) // points)


class Classifier(nn.Module):
    """Two hidden layers with a residual connection around the second."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = nn.Linear(2, width)
        self.inner = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, 2)

    def forward(self, x: plugrad.Tensor) -> plugrad.Tensor:
        hidden = F.gelu(self.enter(x))
        hidden = hidden + F.gelu(self.inner(self.norm(hidden)))
        return self.leave(hidden)


def accuracy(model: nn.Module, data: DataLoader) -> float:
    """The share of correctly classified points."""
    model.eval()
    with plugrad.no_grad():
        right = sum(int((model(x).argmax(1) == arm).sum().item()) for x, arm in data)
    return right / len(data.dataset)


def main(epochs: int = 40) -> float:
    """Trains, saves, loads into a new model and returns its accuracy on held-out points."""
    plugrad.manual_seed(0)
    training, held_out = random_split(spirals(400), [0.75, 0.25])
    batches = DataLoader(training, batch_size=50, shuffle=True)
    model = Classifier(width=32)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        model.train()
        for x, arm in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), arm)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        schedule.step()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spirals.safetensors"
        plugrad.save(model.state_dict(), path)
        loaded = Classifier(width=32)
        loaded.load_state_dict(plugrad.load(path))
    return accuracy(loaded, DataLoader(held_out, batch_size=100))


if __name__ == "__main__":
    print(f"held-out accuracy: {100 * main():.1f} %")
