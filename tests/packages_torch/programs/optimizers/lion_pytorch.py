"""lion-pytorch: the optimizer Lion."""

from lion_pytorch import Lion
from training import fit


def run():
    return [
        fit(lambda parameters: Lion(parameters, lr=1e-2, weight_decay=1e-2)),
        fit(
            lambda parameters: Lion(
                parameters, lr=1e-2, betas=(0.8, 0.9), decoupled_weight_decay=True
            )
        ),
    ]
