# For type checkers: `plugrad.optim.optimizer`. Written by tools/stubs.py.
from plugrad_nn.optim.optimizer import *
