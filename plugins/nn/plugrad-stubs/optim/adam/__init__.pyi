# Type checkers look here for `plugrad.optim.adam`. Written by tools/stubs.py.
from plugrad_nn.optim.adam import *
