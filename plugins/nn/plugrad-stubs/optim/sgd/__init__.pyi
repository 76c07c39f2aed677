# For type checkers: `plugrad.optim.sgd`. Written by tools/stubs.py.
from plugrad_nn.optim.sgd import *
