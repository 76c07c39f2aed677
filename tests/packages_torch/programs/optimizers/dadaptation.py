"""dadaptation: optimizers that find their own rate."""

from dadaptation import DAdaptAdaGrad, DAdaptAdam, DAdaptLion, DAdaptSGD
from training import fit


def run():
    return [fit(make) for make in (DAdaptAdam, DAdaptSGD, DAdaptAdaGrad, DAdaptLion)]
