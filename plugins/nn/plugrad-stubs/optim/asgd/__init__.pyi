# Type checkers look here for `plugrad.optim.asgd`. Written by tools/stubs.py.
from plugrad_nn.optim.asgd import *
