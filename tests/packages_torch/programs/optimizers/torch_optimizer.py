"""torch-optimizer: every optimizer it lists, that no other package has to be there for."""

import torch_optimizer
from training import fit

# Shampoo decomposes its matrices by an SVD, with signs that depend on the library.
NAMES = [
    "A2GradExp",
    "A2GradInc",
    "A2GradUni",
    "AccSGD",
    "AdaBelief",
    "AdaBound",
    "AdaMod",
    "Adafactor",
    "AdamP",
    "AggMo",
    "Apollo",
    "DiffGrad",
    "LARS",
    "Lamb",
    "Lookahead",
    "MADGRAD",
    "NovoGrad",
    "PID",
    "QHAdam",
    "QHM",
    "RAdam",
    "Ranger",
    "RangerQH",
    "RangerVA",
    "SGDP",
    "SGDW",
    "SWATS",
    "Yogi",
]


def run():
    found = []
    for name in NAMES:
        make = getattr(torch_optimizer, name)
        if name == "Lookahead":
            found.append(
                fit(lambda parameters, make=make: make(torch_optimizer.Yogi(parameters, lr=0.01)))
            )
        elif name == "Adafactor":
            found.append(fit(make))
        else:
            found.append(fit(lambda parameters, make=make: make(parameters, lr=0.01)))
    return found
