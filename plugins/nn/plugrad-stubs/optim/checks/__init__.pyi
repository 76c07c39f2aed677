# For type checkers: `plugrad.optim.checks`. Written by tools/stubs.py.
from plugrad_nn.optim.checks import *
