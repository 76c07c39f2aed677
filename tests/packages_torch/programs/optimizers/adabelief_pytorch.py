"""adabelief-pytorch: the optimizer AdaBelief."""

from adabelief_pytorch import AdaBelief
from training import fit


def run():
    return fit(
        lambda parameters: AdaBelief(parameters, lr=1e-2, print_change_log=False, weight_decay=1e-2)
    )
