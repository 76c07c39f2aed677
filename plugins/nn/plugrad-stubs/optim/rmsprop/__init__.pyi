# For type checkers: `plugrad.optim.rmsprop`. Written by tools/stubs.py.
from plugrad_nn.optim.rmsprop import *
