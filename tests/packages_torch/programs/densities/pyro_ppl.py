"""pyro-ppl: a regression by stochastic variational inference, and predictions from it."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.optim import Adam


def run():
    x = torch.randn(20, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(20)

    def model(x, y=None):
        weight = pyro.sample("weight", dist.Normal(torch.zeros(3), torch.ones(3)).to_event(1))
        noise = pyro.sample("noise", dist.Gamma(2.0, 4.0))
        with pyro.plate("data", len(x)):
            return pyro.sample("y", dist.Normal(x @ weight, noise), obs=y)

    pyro.clear_param_store()
    guide = AutoNormal(model)
    inference = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO(num_particles=2))
    losses = [inference.step(x, y) for _ in range(10)]
    parameters = [value.detach() for _, value in sorted(pyro.get_param_store().items())]
    predicted = Predictive(model, guide=guide, num_samples=4)(x)["y"]
    return [losses, parameters, predicted]
