# Type checkers look here for `plugrad.optim.sgd`. Written by tools/stubs.py.
from plugrad_nn.optim.sgd import *
