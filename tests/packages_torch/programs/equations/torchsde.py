"""torchsde: solutions of stochastic differential equations, and their gradients by the adjoint."""

import torch
import torchsde
from training import train


class Drift(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.mu = torch.nn.Linear(3, 3)
        self.sigma = torch.nn.Linear(3, 3)

    def f(self, t, y):
        return self.mu(y)

    def g(self, t, y):
        return self.sigma(y).sigmoid()


def run():
    found = []
    for solve, method in (
        (torchsde.sdeint, "euler"),
        (torchsde.sdeint, "milstein"),
        (torchsde.sdeint_adjoint, "euler"),
    ):
        model, start = Drift(), torch.full((4, 3), 0.1)

        def loss(solve=solve, method=method, model=model, start=start):
            motion = torchsde.BrownianInterval(0.0, 1.0, size=(4, 3), entropy=7)
            ys = solve(model, start, torch.linspace(0, 1, 5), bm=motion, dt=0.1, method=method)
            return ys[-1].square().mean()

        found += train(model, loss)
    return found
