# For type checkers: `plugrad.optim.lr_scheduler.cycles`. Written by tools/stubs.py.
from plugrad_nn.optim.lr_scheduler.cycles import *
