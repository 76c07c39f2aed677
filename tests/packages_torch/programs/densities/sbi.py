"""sbi: posteriors of a simulator's parameters by neural estimation, and samples of them."""

import contextlib
import tempfile

import torch
from sbi.inference import NLE, NPE
from sbi.utils import BoxUniform


def simulate(parameters):
    return parameters.pow(2) + 0.1 * torch.randn_like(parameters)


def run():
    # It writes its results into the working directory.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return estimates()


def estimates():
    prior = BoxUniform(low=-torch.ones(2), high=torch.ones(2))
    parameters = prior.sample((64,))
    seen = simulate(parameters)
    found = [parameters, seen]
    for kind, density in ((NPE, "maf"), (NPE, "nsf"), (NPE, "mdn"), (NLE, "maf")):
        inference = kind(prior, density_estimator=density, show_progress_bars=False)
        inference.append_simulations(parameters, seen)
        estimator = inference.train(max_num_epochs=2, training_batch_size=16)
        found.append(torch.stack([weight.detach().norm() for weight in estimator.parameters()]))
        if kind is NPE:
            posterior = inference.build_posterior(estimator)
            found.append(posterior.log_prob(parameters[:5], x=seen[:1]))
            found.append(posterior.sample((4,), x=seen[:1], show_progress_bars=False))
    return found
