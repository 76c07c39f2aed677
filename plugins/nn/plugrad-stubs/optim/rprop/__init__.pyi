# For type checkers: `plugrad.optim.rprop`. Written by tools/stubs.py.
from plugrad_nn.optim.rprop import *
