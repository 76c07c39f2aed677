"""prodigyopt: the optimizer Prodigy."""

from prodigyopt import Prodigy
from training import fit


def run():
    return [
        fit(lambda parameters: Prodigy(parameters, lr=1.0, weight_decay=0.01)),
        fit(
            lambda parameters: Prodigy(parameters, safeguard_warmup=True, use_bias_correction=True)
        ),
    ]
