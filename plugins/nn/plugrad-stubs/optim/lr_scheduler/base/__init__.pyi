# For type checkers: `plugrad.optim.lr_scheduler.base`. Written by tools/stubs.py.
from plugrad_nn.optim.lr_scheduler.base import *
