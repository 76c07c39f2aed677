"""gpytorch: exact Gaussian process regression."""

import gpytorch
import torch
from training import train


class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def run():
    x = torch.linspace(0, 1, 20).double()
    y = torch.sin(6 * x) + 0.1 * torch.randn(20).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Process(x, y, likelihood).double()
    model.train()
    likelihood.train()
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    found = train(
        model, lambda: -evidence(model(x), y), torch.optim.Adam(model.parameters(), lr=0.1), 5
    )
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        prediction = likelihood(model(torch.linspace(0, 1, 7).double()))
    return [found, prediction.mean, prediction.variance]
