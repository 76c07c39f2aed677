# Type checkers look here for `plugrad.optim.rmsprop`. Written by tools/stubs.py.
from plugrad_nn.optim.rmsprop import *
