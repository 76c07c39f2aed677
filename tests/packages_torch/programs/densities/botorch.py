"""botorch: Bayesian optimisation: a Gaussian process is fitted, and the next points are chosen."""

import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.acquisition.monte_carlo import qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood


def objective(x):
    return 1 - (x - 0.3).norm(dim=-1, keepdim=True) + 0.1 * torch.sin(12 * x).sum(-1, True)


def run():
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    x = torch.quasirandom.SobolEngine(2, scramble=True, seed=4).draw(8, dtype=torch.double)
    y = objective(x)
    found = []
    for _ in range(2):
        model = SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        posterior = model.posterior(torch.linspace(0, 1, 10).double().reshape(5, 2))
        found += [posterior.mean, posterior.variance]
        acquisition = LogExpectedImprovement(model, y.max())
        candidate, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=2, raw_samples=16)
        found += [candidate, value]
        sampler = SobolQMCNormalSampler(torch.Size([32]), seed=5)
        for several in (qExpectedImprovement, qLogExpectedImprovement):
            found.append(several(model, y.max(), sampler)(x[:2].reshape(1, 2, 2) + 0.01))
        x, y = torch.cat([x, candidate]), torch.cat([y, objective(candidate)])
    return [found, x, y]
