"""pytorch-ranger: the optimizer Ranger."""

from pytorch_ranger import Ranger
from training import fit


def run():
    return fit(lambda parameters: Ranger(parameters, lr=1e-2, weight_decay=1e-3), steps=14)
