"""Learning rate schedules: call `step()` on one once per epoch, after the optimizer's."""

from plugrad_nn.optim.lr_scheduler.base import LRScheduler, _LRScheduler
from plugrad_nn.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from plugrad_nn.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from plugrad_nn.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from plugrad_nn.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from plugrad_nn.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "_LRScheduler",
]
