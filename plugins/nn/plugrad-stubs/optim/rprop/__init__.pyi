# Type checkers look here for `plugrad.optim.rprop`. Written by tools/stubs.py.
from plugrad_nn.optim.rprop import *
