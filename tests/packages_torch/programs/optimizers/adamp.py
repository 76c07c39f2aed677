"""adamp: the optimizers AdamP and SGDP."""

from adamp import SGDP, AdamP
from training import fit


def run():
    return [
        fit(lambda parameters: AdamP(parameters, lr=1e-2, weight_decay=1e-2)),
        fit(lambda parameters: SGDP(parameters, lr=1e-2, momentum=0.9, nesterov=True)),
    ]
