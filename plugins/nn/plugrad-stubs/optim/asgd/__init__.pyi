# For type checkers: `plugrad.optim.asgd`. Written by tools/stubs.py.
from plugrad_nn.optim.asgd import *
