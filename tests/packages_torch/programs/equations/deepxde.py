"""deepxde: a network that solves a differential equation with boundary conditions, and one that
also finds a coefficient of the equation."""

import os

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde as dde
import numpy as np
import torch


def run():
    dde.config.set_random_seed(0)
    dde.config.set_default_float("float64")
    line = dde.geometry.Interval(-1, 1)

    def poisson(x, y):
        return -dde.grad.hessian(y, x) - np.pi**2 * torch.sin(np.pi * x)

    ends = dde.icbc.DirichletBC(line, lambda x: 0 * x[:, :1], lambda x, on: on)
    data = dde.data.PDE(line, poisson, ends, 12, 2, solution=lambda x: np.sin(np.pi * x))
    net = dde.nn.FNN([1, 10, 10, 1], "tanh", "Glorot uniform")
    model = dde.Model(data, net)
    model.compile("adam", lr=0.01, metrics=["l2 relative error"], verbose=0)
    history, _ = model.train(iterations=20, display_every=10, verbose=0)
    found = [torch.as_tensor(np.array(history.loss_train)), list(net.parameters())]
    found.append(torch.as_tensor(model.predict(np.linspace(-1, 1, 5)[:, None])))
    rate = dde.Variable(2.0, dtype=torch.float64)
    time = dde.geometry.TimeDomain(0, 1)
    both = dde.geometry.GeometryXTime(line, time)
    inverse = dde.data.TimePDE(
        both,
        lambda x, y: dde.grad.jacobian(y, x, i=0, j=1) + rate * y,
        [dde.icbc.IC(both, lambda x: 1 + 0 * x[:, :1], lambda _, initial: initial)],
        num_domain=10,
        num_initial=4,
    )
    net = dde.nn.FNN([2, 8, 1], "swish", "Glorot normal")
    model = dde.Model(inverse, net)
    model.compile("adam", lr=0.01, external_trainable_variables=rate, verbose=0)
    model.train(iterations=5, display_every=5, verbose=0)
    return [found, rate, list(net.parameters())]
