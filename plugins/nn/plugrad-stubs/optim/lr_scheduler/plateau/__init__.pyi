# For type checkers: `plugrad.optim.lr_scheduler.plateau`. Written by tools/stubs.py.
from plugrad_nn.optim.lr_scheduler.plateau import *
