"""torchdiffeq: ordinary differential equations, and their gradients by the adjoint."""

import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event
from training import train


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
        ).double()

    def forward(self, t, y):
        return self.net(y**3)


def run():
    found = []
    start, t = torch.tensor([[2.0, 0.5]]).double(), torch.linspace(0, 1, 6).double()
    for solve, method in (
        (odeint, "dopri5"),
        (odeint, "rk4"),
        (odeint_adjoint, "dopri5"),
        (odeint, "bosh3"),
        (odeint, "explicit_adams"),
    ):
        model = Field()
        found += train(
            model,
            lambda solve=solve, method=method, model=model: (
                solve(model, start, t, method=method).square().mean()
            ),
        )
    event = odeint_event(
        lambda t, y: -torch.ones_like(y),
        torch.tensor([1.0]).double(),
        torch.tensor(0.0).double(),
        event_fn=lambda t, y: y[0] - 0.25,
    )
    return [found, event]
