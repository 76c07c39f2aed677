"""plugrad.optim: optimizers and learning rate schedules."""

from plugrad.plugins.arguments import explain_constructors
from plugrad_nn.optim import lr_scheduler
from plugrad_nn.optim.adam import Adam, AdamW
from plugrad_nn.optim.optimizer import Optimizer
from plugrad_nn.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]

explain_constructors((SGD, Adam, AdamW, Optimizer))
