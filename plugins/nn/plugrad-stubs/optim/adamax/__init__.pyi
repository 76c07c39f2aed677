# For type checkers: `plugrad.optim.adamax`. Written by tools/stubs.py.
from plugrad_nn.optim.adamax import *
