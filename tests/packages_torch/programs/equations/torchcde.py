"""torchcde: controlled differential equations along splines of data."""

import torch
import torchcde
from training import train


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 12)

    def forward(self, t, z):
        return self.linear(z).tanh().view(*z.shape[:-1], 4, 3)


def run():
    model = Field()
    coefficients = torchcde.hermite_cubic_coefficients_with_backward_differences(
        torch.randn(2, 6, 3)
    )
    path = torchcde.CubicSpline(coefficients)

    def loss():
        z = torchcde.cdeint(
            X=path,
            func=model,
            z0=torch.ones(2, 4),
            t=path.interval,
            adjoint=False,
            method="rk4",
            options={"step_size": 0.5},
        )
        return z[:, -1].square().mean()

    return [train(model, loss), torchcde.natural_cubic_coeffs(torch.randn(2, 6, 3))]
